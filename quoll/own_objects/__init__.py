"""Objects of their own: words of an image to which no pointer of the program leads.

Takes an ``Image``: all its code and data, with no entry in view.
Gives ``OwnObjects``, and the image under assumption S8.
Source: the rules of C for pointers into objects (ISO C 6.5.6).
Names: own_objects.OwnObjects, own_objects.own_objects, address_flow.AddressFlow.
"""
