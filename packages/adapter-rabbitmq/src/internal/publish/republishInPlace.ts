/** Makes the copy that replaces a waiting message in its queue. Pure. */
import type { Incoming, Publication } from "../client.ts"
import * as FieldTable from "../fieldTable.ts"
import * as Wire from "../wire.ts"
import { kept } from "./toPublication.ts"

/** Headers of the server that the copy keeps: the record of its dead-letterings. */
const deaths = /^x-(death$|first-death-|last-death-)/

/** The fewest bytes of headers that the client writes as they are. */
const fewest = 8

/** Returns the message without the server's counts. One with hardly any headers gets `copy` as its name. */
export const republishInPlace = (queue: string, message: Incoming, copy: string): Publication => {
  const { content, properties } = message
  const all = properties.table === undefined ? [] : FieldTable.entries(properties.table)
  const entries = all.filter(({ name }) => !Wire.isServers(name) || deaths.test(name))
  const size = entries.reduce((sum, { bytes }) => sum + bytes.length, 0)
  const { expiration } = properties
  return {
    queue,
    exchange: "",
    routingKey: queue,
    content,
    options: { mandatory: true, ...kept(properties), ...(expiration === undefined ? undefined : { expiration }) },
    kept: entries,
    headers: {
      ...Wire.published(Wire.unwritten(message)),
      ...(size < fewest ? { [Wire.copyHeader]: copy } : undefined)
    }
  }
}
