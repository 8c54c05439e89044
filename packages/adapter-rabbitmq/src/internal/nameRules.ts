/** Rules of AMQP and RabbitMQ for names. Pure. */

/** The longest name or routing key in AMQP, in UTF-8 bytes. */
export const limit = 255

/**
 * Returns why a name cannot be a queue, an exchange or a routing key; `undefined` if it can. The server drops line
 * breaks only when it declares a name: it would declare one queue and report another as missing. A broken surrogate is
 * written as U+FFFD, so two names would be one queue.
 */
export const problemOf = (name: string): { readonly detail: string; readonly remedy: string } | undefined => {
  const size = Buffer.byteLength(name)
  if (size > limit)
    return { detail: `the name has ${size} bytes, AMQP carries at most ${limit}`, remedy: "Use a shorter name" }
  if (!name.isWellFormed())
    return {
      detail: `the name ${JSON.stringify(name)} has a broken surrogate, which UTF-8 cannot carry`,
      remedy: "Use a name that is well-formed Unicode"
    }
  if (!/[\r\n]/.test(name)) return undefined
  return {
    detail: `the name ${JSON.stringify(name)} has a line break, which RabbitMQ drops when it declares the name`,
    remedy: "Remove the line break, such as the one at the end of a secret that was read from a file"
  }
}

/** The prefix of the reply addresses that need no queue. https://www.rabbitmq.com/docs/direct-reply-to */
const directReply = "amq.rabbitmq.reply-to"

/** Whether the name is a direct reply-to address. The server accepts messages for it, but has no queue. */
export const isDirectReply = (name: string): boolean => name.startsWith(directReply)

/**
 * Returns why a name cannot be a queue; `undefined` if it can. The adapter must not ask the server about such a name:
 * the server closes the connection when asked about a reply address.
 */
export const queueProblemOf = (name: string): ReturnType<typeof problemOf> =>
  isDirectReply(name)
    ? {
        detail: `RabbitMQ keeps names that begin with ${directReply} for answers, and no queue has one`,
        remedy: 'Send an answer under another name, with RabbitMqNative.make({ exchange: "", routingKey: replyTo })'
      }
    : problemOf(name)

/**
 * Whether a queue can have the name. The server reads an empty name as the last queue that was named on the channel.
 */
export const isQueue = (name: string): boolean => name !== "" && queueProblemOf(name) === undefined
