/** Events as operators may see them. */
import * as Redaction from "../Redaction.ts"
import * as Shown from "./shown.ts"
import type { Told } from "./work/events.ts"

/** Redacts an event, once for operators who may see bodies and once for others. */
export type Show = (told: Told, mayBodies: boolean) => Told

const hidden = (told: Told): Told => ({
  ...told,
  words: "the redact hook failed",
  id: told.id && Redaction.mark,
  error: undefined
})

const redacted = (redact: Redaction.Redact, told: Told, mayBodies: boolean): Told => {
  const { broker, error, id, queue = "", words } = told
  try {
    const shown = redact({ headers: {}, id, error, history: [words] }, { broker, queue })
    return {
      ...told,
      id: id === undefined ? undefined : (shown.id ?? Redaction.mark),
      words: shown.history?.[0] ?? Redaction.mark,
      error: error && { name: shown.error?.name ?? "", message: Shown.message(shown.error?.message, mayBodies) }
    }
  } catch {
    return hidden(told)
  }
}

/** Redacts events with this hook. */
export const make = (redact: Redaction.Redact): Show => {
  const known = { bodies: new WeakMap<Told, Told>(), others: new WeakMap<Told, Told>() }
  return (told, mayBodies) => {
    const own = mayBodies ? known.bodies : known.others
    const shown = own.get(told) ?? redacted(redact, told, mayBodies)
    own.set(told, shown)
    return shown
  }
}
