"""The report as one HTML file that opens offline.

Takes a ``Result`` and an optional comparison with a baseline.
Gives the text of a page: a document of data, and the scripts and styles that show it.
Source: docs/outputs.md; layered drawings by dagre, as Gansner, Koutsofios, North and Vo (1993).
Names: write.to_html, document.page_document.
"""
