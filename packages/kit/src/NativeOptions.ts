/**
 * Native options: options of one message that only one broker supports, checked when made, and immutable.
 *
 * When to use: in an adapter whose broker has features that others lack, such as exchanges. Core passes these options
 * on as the `native` of an outgoing message, and other adapters ignore them.
 *
 * @example
 * ```ts
 * import { OptionKind } from "@requeue/core/port"
 * import { NativeOptions } from "@requeue/kit"
 *
 * const options = NativeOptions.define<{ readonly priority?: number }, { readonly level: number }>({
 *   broker: "mine",
 *   kinds: { priority: OptionKind.whole(0, 9) },
 *   read: ({ priority = 0 }) => ({ level: priority })
 * })
 * const native = options.make("MineNative.make", { priority: 3 })
 * options.of(native) // => { level: 3 }
 * ```
 */
import { Failure, type Message, OptionKind, OptionNames } from "@requeue/core/port"

/** The native options of one broker. */
export interface NativeOptions<in Options extends object, out A extends object> {
  /**
   * Makes the `native` of a message to send. `call` names the function in errors.
   *
   * @throws RangeError when an option is unknown, of the wrong kind, or refused
   */
  readonly make: (call: string, options: Options) => Message.Native
  /**
   * Returns a message's native options, or the error of options that `make` did not check; `undefined` if there are none for
   * this broker.
   */
  readonly of: (native: Message.Native | undefined) => A | RangeError | undefined
}

/** The options of {@link define}. */
export interface Definition<Options extends object, A extends object> {
  /** The broker's name, under which core passes the options on. */
  readonly broker: string
  readonly kinds: OptionNames.Of<Options>
  /**
   * Converts options that have the right kinds, and copies mutable values. If it returns text, the options are refused
   * with this text as the error.
   */
  readonly read: (options: Options) => A | string
}

interface Checked<A> {
  /** The frozen copy of the options. */
  readonly options: object
  readonly value: A
}

/** Defines the native options of a broker. */
export const define = <Options extends object, A extends object>({
  broker,
  kinds,
  read
}: Definition<Options, A>): NativeOptions<Options, A> => {
  /** The values of `make`, by their frozen options. */
  const made = new WeakMap<object, A>()

  const checked = (call: string, given: unknown): Checked<A> | RangeError => {
    try {
      const refused = OptionNames.refusal(call, given, kinds)
      if (refused !== undefined) return refused
      const options = Object.freeze({ ...(given as Options) }) // It has just been checked.
      const value = read(options)
      return typeof value === "string" ? OptionNames.error(call, undefined, value) : { options, value }
    } catch (error) {
      return OptionNames.error(call, undefined, `options cannot be read: ${Failure.summarize(error).message}`)
    }
  }

  return {
    make: (call, options) => {
      const result = checked(call, options)
      if (result instanceof RangeError) throw result
      made.set(result.options, result.value)
      return Object.freeze({ [broker]: result.options })
    },
    of: (native) => {
      const given = native?.[broker]
      if (given === undefined) return undefined
      const value = OptionKind.isObject(given) ? made.get(given) : undefined
      if (value !== undefined) return value
      const result = checked(`native.${broker}`, given)
      return result instanceof RangeError ? result : result.value
    }
  }
}
