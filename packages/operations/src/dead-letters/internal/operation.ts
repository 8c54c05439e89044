/**
 * The name of a redrive, as the copies that it publishes carry it, and their retries and dead letters after them: by it, a
 * letter that has come back is told from all others.
 */
import { OptionKind } from "@requeue/core/port"

export interface Operation {
  /** The name that reports and events tell. Calls that go on with each other's work have the same. */
  readonly id: string
  /** One call of the operation. That of an edit begins with `edit.`. */
  readonly run: string
}

/** An id that somebody chooses. */
export const idKind = OptionKind.matching('1 to 32 letters, digits, ".", "_" or "-"', /^[\w.-]{1,32}$/)

const random = (length: number): string => crypto.randomUUID().replaceAll("-", "").slice(0, length)

/** An operation with an id of its own, unless one is given. `before` begins the name of the call. */
export const make = (id = random(12), before = ""): Operation => ({ id, run: `${before}${random(6)}` })

/** The text in the metadata of what the operation publishes; `stage` counts from 1. */
export const tag = ({ id, run }: Operation, stage: number): string => `${id}:${run}:${stage}`

/** Whether any call of the operation has published the copy with this text. */
export const isOf = (text: string | undefined, { id }: Operation): boolean => text?.startsWith(`${id}:`) === true

/** The stage in which this call has published the copy with this text; `undefined` when it has not. */
export const stageOf = (text: string | undefined, { id, run }: Operation): number | undefined => {
  const before = `${id}:${run}:`
  return text?.startsWith(before) === true ? Number(text.slice(before.length)) : undefined
}
