"""The agents door: Markdown with front matter in, frozen records out."""
