/**
 * Options of calls that remove. `all` must be explicit: a missing option must not remove everything.
 */
import { OptionKind, OptionNames } from "@requeue/core/port"

/** The kinds of the options that select what to remove. */
export const kinds = {
  all: { expected: "true", holds: (value: unknown) => value === true },
  filter: OptionKind.callback
}

/**
 * Returns the error of the options of a call; `undefined` if exactly one of `all` and `filter` is given. `things` names
 * what is removed.
 */
export const refusal = <Options extends { readonly all?: unknown; readonly filter?: unknown }>(
  { call, queue, things }: { readonly call: string; readonly queue: string; readonly things: string },
  options: unknown,
  known: OptionNames.Of<Options>
): RangeError | undefined => {
  const given = options ?? {}
  const refused = OptionNames.refusal(call, given, known, queue)
  if (refused !== undefined) return refused
  const { all, filter } = given as Options // Its kinds have been checked.
  if (all === undefined && filter === undefined) {
    const remedy = "Pass { filter } for some of them, or { all: true } for all"
    return OptionNames.error(call, queue, `nothing says which ${things} to remove`, remedy)
  }
  return all === undefined || filter === undefined
    ? undefined
    : OptionNames.error(call, queue, "give all or filter, not both")
}
