"""Questions and policies: what is asked, of which columns, within which bounds."""
