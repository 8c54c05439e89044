/** Messages as brokers store them: their keys, the facts that only their metadata has, and which of them are refused. */
import { isForever, type Refusal } from "../Scenario.ts"
import type { World } from "./World.ts"

/** A message on the wire. */
export interface Parcel {
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
  /** The encoded metadata; `undefined` for a foreign message. */
  readonly metadata: string | undefined
}

/** The header that has the key of a message whose body has none. */
export const keyHeader = "key"

/** The key that travels with a message: in a header, or in its body. */
export const keyOf = ({ body, headers }: Pick<Parcel, "body" | "headers">): number =>
  Number(headers[keyHeader] ?? /\d+/.exec(Buffer.from(body).toString("latin1"))?.[0] ?? 0)

interface Tale {
  readonly reason: string | undefined
  readonly cut: number
}

// Cast, because any client may have written it.
const read = (metadata: string | undefined): Partial<Record<string, any>> => {
  try {
    return metadata === undefined ? {} : JSON.parse(metadata)
  } catch {
    return {}
  }
}

/** The facts of a copy that only its metadata has. */
export const taleOf = (metadata: string | undefined): Tale => {
  const { c, dl } = read(metadata)
  return { reason: dl?.r, cut: typeof c === "number" ? c : 0 }
}

/** Whether a refusal is meant for this copy. */
const isMeant = (of: Refusal["of"], queue: string, { metadata }: Parcel): boolean => {
  if (of === "copy") return true
  const isLetter = queue !== "work"
  if (of === "deadLetter" || isLetter) return of === "deadLetter" && isLetter
  return of === "retry" || read(metadata)["a"] > 0
}

/** Whether the broker refuses this copy permanently; the reason if it does. */
export const refusal = (world: World, queue: string, parcel: Parcel): Refusal["reason"] | undefined => {
  const { refusals } = world.scenario
  if (refusals.length === 0) return undefined
  const key = keyOf(parcel)
  const found = refusals.find((each) => each.key === key)
  if (found === undefined || (world.isCalm() && !isForever(found))) return undefined
  const { cut } = taleOf(parcel.metadata)
  return isMeant(found.of, queue, parcel) && cut < found.until ? found.reason : undefined
}
