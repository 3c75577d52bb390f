"""Source text as it is written: comments, functions and loop statements, by line.

Takes the text of a C or assembly file.
Gives its comments, and the lines of its functions and loops.
Source: ISO C11, sections 6.4.9, 6.8.5 and 6.9.1; nothing is preprocessed.
Names: tokens.CToken, c_parser.LoopText, loop_statement.LoopStatement.
"""
