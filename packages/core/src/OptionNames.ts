/** Misspelt options are refused and not ignored: a limit that nobody hears would hammer, or lose, messages. */

/** The names of all options of a type, as a value that the compiler keeps complete. */
export type Of<Options> = { readonly [K in keyof Required<Options>]: true }

/**
 * Checks an options object from code that no compiler checked.
 *
 * @throws RangeError naming the first option that is not known
 */
export const check = <Options extends object>(where: string, options: Options, known: Of<Options>): void => {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name))
  if (unknown === undefined) return
  throw new RangeError(`${where}: options must be among ${Object.keys(known).join(", ")}, got ${unknown}`)
}
