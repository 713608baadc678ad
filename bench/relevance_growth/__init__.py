"""Whether what recall brings stays relevant while more and more of other topics is remembered."""
