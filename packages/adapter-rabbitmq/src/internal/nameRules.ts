/** Rules of AMQP and the server for names. Pure. */

/** The longest name or routing key that AMQP carries, in UTF-8 bytes. */
export const limit = 255

/**
 * Why a name cannot be that of a queue or an exchange, nor a routing key; `undefined` when it can. The server drops line breaks from
 * the names that it declares, and not from those that it is asked for: it would declare one queue and find another one missing. A
 * broken surrogate is written as U+FFFD, so two names would be one queue.
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
