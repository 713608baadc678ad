"""The routes of API.md, a module for each of its chapters."""
