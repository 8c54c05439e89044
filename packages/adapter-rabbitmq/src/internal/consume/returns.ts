/**
 * The returns of the copies that a message replaces, as it carries them. A digest binds them to this message: what a
 * producer makes up, or repeats on another message, counts nothing. Pure.
 */
import { Metadata } from "@requeue/core/port"
import { digest } from "../client.ts"

/** The count of a copy of this name. */
export const write = (count: number, name: string): string => `${count} ${digest("returns", name, String(count))}`

/** The count of this copy, whose name is asked for only where there may be a count; `undefined` where there is none. */
export const read = (header: unknown, nameOf: () => string | undefined): number | undefined => {
  if (typeof header !== "string") return undefined
  const [, digits] = /^(\d{1,16}) /.exec(header) ?? []
  const name = digits === undefined ? undefined : nameOf()
  const count = Number(digits)
  return name !== undefined && header === write(count, name) ? Math.min(count, Metadata.countLimit) : undefined
}
