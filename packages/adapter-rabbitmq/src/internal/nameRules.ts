/** Rules of AMQP and the server for names. Pure. */

/** The longest name or routing key that AMQP carries, in UTF-8 bytes. */
export const limit = 255

/**
 * Why a name cannot be that of a queue or an exchange, nor a routing key; `undefined` when it can. The server drops line breaks from
 * the names that it declares, and not from those that it is asked for: it would declare one queue and find another one missing.
 */
export const problemOf = (name: string): { readonly detail: string; readonly remedy: string } | undefined => {
  const size = Buffer.byteLength(name)
  if (size > limit)
    return { detail: `the name has ${size} bytes, AMQP carries at most ${limit}`, remedy: "Use a shorter name" }
  if (!/[\r\n]/.test(name)) return undefined
  return {
    detail: `the name ${JSON.stringify(name)} has a line break, which RabbitMQ drops when it declares the name`,
    remedy: "Remove the line break, such as the one at the end of a secret that was read from a file"
  }
}

/** The name, and the start of the names, by which a requester gets answers without a queue. https://www.rabbitmq.com/docs/direct-reply-to */
const directReply = "amq.rabbitmq.reply-to"

/** Whether the name is a requester's own. The server takes messages for it, and has no queue. */
export const isDirectReply = (name: string): boolean => name.startsWith(directReply)

/**
 * Why a name cannot be that of a queue; `undefined` when it can. The server must not be asked about such a name: about a
 * requester's, it answers by closing the connection.
 */
export const queueProblemOf = (name: string): ReturnType<typeof problemOf> =>
  isDirectReply(name)
    ? {
        detail: `RabbitMQ keeps names that begin with ${directReply} for answers, and no queue has one`,
        remedy: 'Send an answer under another name, with RabbitMqNative.make({ exchange: "", routingKey: replyTo })'
      }
    : problemOf(name)

/** Whether a queue can have the name. The server takes the empty one for the queue that was named last on the channel. */
export const isQueue = (name: string): boolean => name !== "" && queueProblemOf(name) === undefined
