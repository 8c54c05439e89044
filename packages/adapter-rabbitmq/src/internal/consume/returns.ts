/**
 * The header with the returns of the copies that a message replaces. A digest binds the count to this message, so a
 * count that a producer invents or copies to another message is ignored. Pure.
 */
import { Metadata } from "@requeue/core/port"
import { digest } from "../client.ts"

/** Writes the count for a copy of this name. */
export const write = (count: number, name: string): string => `${count} ${digest("returns", name, String(count))}`

/** Reads the count of this copy; `undefined` if it has none. `nameOf` is called only if there may be a count. */
export const read = (header: unknown, nameOf: () => string | undefined): number | undefined => {
  if (typeof header !== "string") return undefined
  const [, digits] = /^(\d{1,16}) /.exec(header) ?? []
  const name = digits === undefined ? undefined : nameOf()
  const count = Number(digits)
  return name !== undefined && header === write(count, name) ? Math.min(count, Metadata.countLimit) : undefined
}
