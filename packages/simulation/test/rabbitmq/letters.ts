/** Messages of the simulated server as the suite sees dead letters. */
import type { Delivery } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import * as Fields from "../../src/servers/rabbitmq/Fields.ts"
import type { Entry } from "../../src/servers/rabbitmq/Entry.ts"

/** Headers of the server and of Requeue, which handlers do not see. */
const hidden = /^(requeue|x-death$|x-first-death-|x-last-death-|x-delivery-count$|x-acquired-count$|x-opt-)/

/** A waiting message. Foreign messages have no id, and are new. */
export const toDelivery = ({ message: { content, properties, table } }: Entry): Delivery.Delivery => {
  const all = table === undefined ? {} : Fields.decode(table)
  const encoded = all[Metadata.header]
  const metadata = typeof encoded === "string" ? Metadata.decode(encoded) : undefined
  const { contentEncoding, contentType, messageId, timestamp } = properties
  const headers = Object.entries(all).flatMap(([name, value]) =>
    typeof value === "string" && !hidden.test(name) ? [[name, value] as const] : []
  )
  return {
    body: content,
    headers: {
      ...(typeof contentType === "string" ? { "content-type": contentType } : {}),
      ...(typeof contentEncoding === "string" ? { "content-encoding": contentEncoding } : {}),
      ...Object.fromEntries(headers)
    },
    attempts: (metadata?.attempts ?? 0) + 1,
    metadata: metadata ?? Metadata.make(String(messageId ?? ""), (timestamp ?? 0) * 1000),
    receipt: undefined
  }
}
