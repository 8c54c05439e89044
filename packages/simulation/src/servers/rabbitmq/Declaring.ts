/** The requests of a channel that declare, check and remove queues, exchanges and bindings, as amqplib 2.3.1 offers them. */
import type { ConfirmChannel } from "@requeue/adapter-rabbitmq/driver"
import type { Sent } from "./Faults.ts"
import * as Fields from "./Fields.ts"
import type { Session } from "./Session.ts"

/** Sends a request by the driver's name of its method. */
type Ask = <A>(method: string, sent: Sent, run: (session: Session) => unknown) => Promise<A>

const other: Sent = { name: "other", about: "" }

/** Makes the requests of one channel. */
export const make = (ask: Ask) => {
  const assertQueue: ConfirmChannel["assertQueue"] = (name = "", options = {}) => {
    const { arguments: given = {}, autoDelete = false, durable = true, exclusive = false } = options
    const args = Fields.decode(Fields.encode(given))
    return ask("QueueDeclare", { name: "declare", about: name }, (session) =>
      session.declareQueue(name, { durable, exclusive, autoDelete, arguments: args })
    )
  }

  const checkQueue: ConfirmChannel["checkQueue"] = (name) =>
    ask("QueueDeclare", { name: "declare", about: name }, (session) => session.checkQueue(name))

  const deleteQueue: ConfirmChannel["deleteQueue"] = (name, { ifEmpty = false, ifUnused = false } = {}) =>
    ask("QueueDelete", other, (session) => session.deleteQueue(name, { isEmpty: ifEmpty, isUnused: ifUnused }))

  const purgeQueue: ConfirmChannel["purgeQueue"] = (name) =>
    ask("QueuePurge", other, (session) => session.purgeQueue(name))

  const bindQueue: ConfirmChannel["bindQueue"] = (queue, source, key, args = {}) =>
    ask("QueueBind", { name: "declare", about: queue }, (session) => {
      session.bind({ queue, source, key, arguments: args })
      return {}
    })

  const unbindQueue: ConfirmChannel["unbindQueue"] = (queue, source, key, args = {}) =>
    ask("QueueUnbind", other, (session) => {
      session.unbind({ queue, source, key, arguments: args })
      return {}
    })

  const assertExchange: ConfirmChannel["assertExchange"] = (
    exchange,
    type,
    { arguments: args = {}, durable = true } = {}
  ) =>
    ask("ExchangeDeclare", { name: "declare", about: exchange }, (session) => {
      session.declareExchange(exchange, type, { durable, arguments: args })
      return { exchange }
    })

  const checkExchange: ConfirmChannel["checkExchange"] = (exchange) =>
    ask("ExchangeDeclare", { name: "declare", about: exchange }, (session) => {
      session.checkExchange(exchange)
      return {}
    })

  const deleteExchange: ConfirmChannel["deleteExchange"] = (exchange) =>
    ask("ExchangeDelete", other, (session) => {
      session.deleteExchange(exchange)
      return {}
    })

  return {
    assertQueue,
    checkQueue,
    deleteQueue,
    purgeQueue,
    bindQueue,
    unbindQueue,
    assertExchange,
    checkExchange,
    deleteExchange
  }
}
