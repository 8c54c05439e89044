/** Telemetry whose defects harm no message: a function that throws is skipped, and `onDefect` is called. */
import * as Effect from "effect/Effect"
import type { Within } from "../../runtime/AsyncContext.ts"
import * as Thenable from "../../message/Thenable.ts"
import type { About, Run, Service, Watch } from "../Telemetry.ts"

/** Called with the error. */
type OnDefect = (error: unknown) => void

/**
 * Returns the telemetry of a consumer. Its functions run in the consumer's async context; one that throws counts as one that
 * does nothing.
 */
export const watch = (
  telemetry: Service | undefined,
  about: About,
  inContext: Within,
  onDefect: OnDefect
): Watch | undefined => {
  const attempt = <A>(call: () => A): A | undefined => {
    try {
      return inContext(call)
    } catch (error) {
      onDefect(error)
      return undefined
    }
  }
  const given = attempt(() => telemetry?.consumer(about))
  if (given === undefined) return undefined
  return {
    onEvent: (event) => attempt(() => Thenable.onRejected(given.onEvent(event), onDefect)),
    run: (deliveries, rerun) => {
      const run = attempt(() => given.run(deliveries, rerun))
      return {
        within: (handler) => (run === undefined ? handler() : around(run, handler, onDefect)),
        end: (ending) => attempt(() => run?.end(ending))
      }
    },
    settle: (requests, settle) => {
      const watched = attempt(() => given.settle(requests, settle))
      return Effect.isEffect(watched) ? watched : settle
    },
    close: () => attempt(() => given.close())
  }
}

/** Calls the handler once, within the run if possible, and throws what the handler throws. */
const around = <A>(run: Run, handler: () => A, onDefect: OnDefect): A => {
  let ended: { readonly answer: A } | { readonly error: unknown } | undefined
  const call = (): A => {
    try {
      const answer = handler()
      ended = { answer }
      return answer
    } catch (error) {
      ended = { error }
      throw error
    }
  }
  let answer: A | undefined
  try {
    answer = run.within(call)
  } catch (error) {
    if (ended === undefined || "answer" in ended) onDefect(error)
  }
  if (ended === undefined) return handler()
  if ("error" in ended) throw ended.error
  return answer ?? ended.answer
}
