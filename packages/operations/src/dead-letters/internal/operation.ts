/**
 * The name of a redrive. The copies that it publishes have it, and so do their retries and dead letters: it identifies
 * letters that have come back.
 */
import { OptionKind } from "@requeue/core/port"

export interface Operation {
  /** The id in reports and events. Calls that continue the same work have the same. */
  readonly id: string
  /** One call of the operation. For an edit it begins with `edit.`. */
  readonly run: string
}

/** A valid id. */
export const idKind = OptionKind.matching('1 to 32 letters, digits, ".", "_" or "-"', /^[\w.-]{1,32}$/)

const random = (length: number): string => crypto.randomUUID().replaceAll("-", "").slice(0, length)

/** An operation with the given id, or a new one. `before` begins the name of the call. */
export const make = (id = random(12), before = ""): Operation => ({ id, run: `${before}${random(6)}` })

/** The text in the metadata of what the operation publishes; `stage` counts from 1. */
export const tag = ({ id, run }: Operation, stage: number): string => `${id}:${run}:${stage}`

/** Whether any call of the operation published the copy with this text. */
export const isOf = (text: string | undefined, { id }: Operation): boolean => text?.startsWith(`${id}:`) === true

/** The stage in which this call published the copy with this text; `undefined` if it did not. */
export const stageOf = (text: string | undefined, { id, run }: Operation): number | undefined => {
  const before = `${id}:${run}:`
  return text?.startsWith(before) === true ? Number(text.slice(before.length)) : undefined
}
