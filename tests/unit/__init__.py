"""Plain functions and classes; milliseconds each."""
