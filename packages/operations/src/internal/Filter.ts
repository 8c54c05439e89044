/** Filters, by which programs select messages. */
import { Thenable } from "@requeue/core/port"

/**
 * Whether the filter returns exactly `true`, because a filter that forgets to return must not select everything. `make`
 * makes the filter's argument, and is called only if there is a filter.
 *
 * @throws TypeError when the filter is async, because it would select nothing, without an error
 */
export const selects = <A>(filter: ((value: A) => unknown) | undefined, make: () => A): boolean => {
  const answer = filter === undefined || filter(make())
  if (!Thenable.is(answer)) return answer === true
  // Nothing else handles its rejection.
  answer.then(undefined, () => {})
  throw new TypeError("filter must return true or false, not a promise, because the broker waits for the answer")
}
