/**
 * Short-lived lists, such as one for each message.
 *
 * When to use: instead of an array literal that every message evaluates. V8 watches where literals are evaluated. If most of their
 * objects survive once, as in a burst of sends while the connection opens, it allocates all later ones of that place in the old
 * generation of the heap, and they keep all that they refer to alive until the next full garbage collection: p99 becomes ten times
 * as long. The objects of a class and the rest of arguments are never allocated so. Hence objects that every message needs have
 * classes.
 */

/** Returns a list of the items. */
export const of = <A>(...items: Array<A>): Array<A> => items
