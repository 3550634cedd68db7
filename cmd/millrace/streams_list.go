package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/streams/inspect"
)

func newStreamsList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List stream applications",
		Example: `  millrace streams list
  millrace streams list --output json`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
				apps, err := i.Applications(ctx)
				if err != nil {
					return err
				}
				p := newPrinter(cmd)
				for _, a := range apps {
					line := fmt.Sprintf("%s\t%s\t%s\t%s\t%s", a.ID, a.State, counted(int64(a.Workers), "worker"),
						counted(int64(len(a.Stores)), "store"), counted(int64(len(a.Internal)), "internal topic"))
					if len(a.Missing) > 0 {
						line += "\tmissing: " + strings.Join(a.Missing, ", ")
					}
					if err := p.print(a, "%s", line); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func newStreamsDescribe() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "describe APPLICATION",
		Short: "Show the topology of an application, as it last started",
		Example: `  millrace streams describe shop
  millrace streams describe shop --format dot | dot -Tsvg > shop.svg`,
		Args: exactly(1, "an application"),
		RunE: func(cmd *cobra.Command, args []string) error {
			draw := map[string]func(inspect.Description) string{
				"text":    func(d inspect.Description) string { return d.Text },
				"mermaid": inspect.Description.Mermaid,
				"dot":     inspect.Description.DOT,
			}[format]
			if draw == nil {
				return badUsage("--format is %q, must be text, mermaid or dot", format)
			}
			return withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
				d, err := i.Describe(ctx, args[0])
				if err != nil {
					return err
				}
				text := draw(d)
				if d.Reset {
					text = "application " + d.ID + " was reset and has not started since\n"
				}
				v := struct {
					ID    string `json:"id"`
					Reset bool   `json:"reset,omitempty"`
					Text  string `json:"description"`
				}{d.ID, d.Reset, text}
				return newPrinter(cmd).print(v, "%s", strings.TrimSuffix(text, "\n"))
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, mermaid or dot")
	return cmd
}
