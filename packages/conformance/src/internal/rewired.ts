/** Messages and batches with other methods, for mutants that misread their handlers. */
import type { Handler } from "@requeue/core"

/** The methods to change. */
type Methods = (message: Handler.Received<any>) => Partial<Handler.Received<any>> // the bodies pass unchanged

/** Makes a message with the same data and other methods. */
export const rewiredMessage = <A>(message: Handler.Received<A>, methods: Methods): Handler.Received<A> => {
  const { attempts, body, fairBy, headers, id, key, native, timestamp } = message
  const own = {
    ack: () => message.ack(),
    retry: (given?: object) => message.retry(given),
    fail: (error: unknown, given?: object) => message.fail(error, given),
    within: (transaction: unknown) => message.within(transaction)
  }
  return { attempts, body, fairBy, headers, id, key, native, timestamp, ...own, ...methods(message) }
}

/** Makes a batch with the same messages and other methods. Default: the batch's own methods. */
export const rewired = <A>(
  batch: Handler.Batch<A>,
  methods: Methods,
  all: Partial<Handler.Batch<A>> = {}
): Handler.Batch<A> => ({
  ...batch,
  messages: batch.messages.map((message) => rewiredMessage(message, methods)),
  ...all
})
