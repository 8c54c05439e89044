/** Clients whose calls report whether SQS is reachable. */
import type { Connection } from "@requeue/core/port"
import type { Call, Client } from "./client.ts"
import { statusOf, toBrokerError } from "./toBrokerError.ts"

/** Makes a call report whether it reached SQS, and why not. */
const told =
  (reach: Connection.Tracker) =>
  <I, O>(call: Call<I, O>): Call<I, O> =>
  async (input) => {
    try {
      const output = await call(input)
      reach.set("up")
      return output
    } catch (error) {
      if (statusOf(error) === undefined) reach.set("down", toBrokerError(error, { operation: "connect" }).message)
      else reach.set("up")
      throw error
    }
  }

/** Makes all calls of a client report to `reach`. */
export const reporting = (client: Client, reach: Connection.Tracker): Client => {
  const tell = told(reach)
  return {
    getQueueUrl: tell(client.getQueueUrl),
    createQueue: tell(client.createQueue),
    setQueueAttributes: tell(client.setQueueAttributes),
    getQueueAttributes: tell(client.getQueueAttributes),
    purgeQueue: tell(client.purgeQueue),
    listDeadLetterSourceQueues: tell(client.listDeadLetterSourceQueues),
    startMessageMoveTask: tell(client.startMessageMoveTask),
    listMessageMoveTasks: tell(client.listMessageMoveTasks),
    cancelMessageMoveTask: tell(client.cancelMessageMoveTask),
    receiveMessage: tell(client.receiveMessage),
    sendMessageBatch: tell(client.sendMessageBatch),
    deleteMessageBatch: tell(client.deleteMessageBatch),
    changeMessageVisibilityBatch: tell(client.changeMessageVisibilityBatch),
    accountId: client.accountId,
    polls: (waitTime) => tell(client.polls(waitTime))
  }
}
