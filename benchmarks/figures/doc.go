// Package figures is what the programs that measure have in common once something is measured: named figures, their
// medians and extremes over several rounds, what is asked of a ratio, and how all of that reads in a table. It measures
// nothing and knows nobody who takes part; a side is a name.
//
// A value is noted as measured and formatted only for the page: goals are judged by what was measured, not by what is
// printed. What failed is kept beside what did not, so that a page can not show a median of the rounds that happened to
// go well without saying so.
package figures
