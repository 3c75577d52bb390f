"""Abstract caches: which memory references hit, in every context.

Takes a supergraph with addresses, and the sizes and policy of the caches.
Gives ``CacheClassification``: AH, AM, FM or NC for each reference, in L1 and in locked L2 lines.
Source: Ferdinand and Wilhelm, Real-Time Systems 1999; Hahn and Grund, ECRTS 2012; docs/caches.md.
Names: classify.classify, reference.CacheClassification, must, may, persistence.
"""
