/**
 * AWS' SDK on a simulated SQS: the driver of `@requeue/adapter-sqs`.
 *
 * | rule | source |
 * | --- | --- |
 * | a call has three attempts; one that was throttled, got no answer or a status of 5xx is followed by another one | `maxAttempts` in the adapter's `client.ts`, and `service-error-classification` in https://github.com/smithy-lang/smithy-typescript |
 * | the pause is random, up to 100 ms, or 500 after throttling, doubled for each attempt | `DefaultRetryBackoffStrategy`, same place |
 * | a change of visibility has one attempt | `changes` in the adapter's `client.ts` |
 * | a send fails as doubtful, or succeeds with the doubt, if an attempt may have taken effect | `doubts.ts` of the adapter |
 */
import { type Call, type Client, type Driver, NotSent, type Settings } from "@requeue/adapter-sqs/driver"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Host } from "../Host.ts"
import * as Api from "./Api.ts"
import { isThrottling } from "./AwsError.ts"
import type { Failure, Network } from "./Network.ts"

/** The most attempts of a call. */
const attempts = 3

/** Errors of Node and of the SDK for a call without an answer. */
const silences = {
  reset: { name: "Error", code: "ECONNRESET", message: "read ECONNRESET" },
  refused: { name: "Error", code: "ECONNREFUSED", message: "connect ECONNREFUSED" },
  silence: { name: "TimeoutError", message: "the request has timed out" },
  closed: { name: "AbortError", message: "the connection has been closed" }
} as const

/** Makes the error that the SDK rejects with. */
const toError = (failure: Failure): Error => {
  if (typeof failure === "string") return Object.assign(new Error(), silences[failure])
  const { code, message, name, status } = failure
  return Object.assign(new Error(message), { name, Code: code, $metadata: { httpStatusCode: status } })
}

/** Whether an attempt may have taken effect. */
const isDoubtful = (failure: Failure): boolean =>
  typeof failure === "string" ? failure !== "refused" : failure.status === 500

const mayRepeat = (failure: Failure): boolean =>
  typeof failure === "string" ? failure !== "closed" : failure.status >= 500 || isThrottling(failure)

/** Makes the calls of one client. `isClosed` ends them. */
const calling = (host: Host, network: Network, client: string, process: string, isClosed: () => boolean) => {
  const wait = (failure: Failure, attempt: number): Promise<void> => {
    const base = typeof failure !== "string" && isThrottling(failure) ? 500 : 100
    return new Promise((resolve) => void host.after(base * 2 ** (attempt - 1) * host.random("pause"), resolve))
  }

  return async (
    action: string,
    input: Api.Body,
    { most = attempts, timeout }: { readonly most?: number; readonly timeout: number }
  ): Promise<{ readonly output: object; readonly doubt: Error | undefined }> => {
    if (isClosed()) throw new NotSent({ cause: toError("closed") })
    let doubt: Error | undefined
    for (let attempt = 1; ; attempt++) {
      const outcome = await network.attempt(Api.call(action, input, process), client, timeout)
      if (Result.isSuccess(outcome)) return { output: outcome.success, doubt }
      const { failure } = outcome
      if (isDoubtful(failure)) doubt = toError(failure)
      if (attempt === most || !mayRepeat(failure) || isClosed()) {
        throw action === "SendMessageBatch" ? (doubt ?? toError(failure)) : toError(failure)
      }
      await wait(failure, attempt)
    }
  }
}

const open = (
  host: Host,
  network: Network,
  { requestTimeout }: Settings,
  { client, isClosed, process }: { readonly client: string; readonly process: string; readonly isClosed: () => boolean }
): Client => {
  const call = calling(host, network, client, process, isClosed)
  // Cast, because the server's answers have the types of the SDK.
  const method =
    <I extends Api.Body, O>(
      action: string,
      options: { readonly most?: number; readonly timeout?: number } = {}
    ): Call<I, O> =>
    async (input) =>
      (await call(action, input, { timeout: requestTimeout, ...options })).output as O // as SQS documents it
  return {
    getQueueUrl: method("GetQueueUrl"),
    createQueue: method("CreateQueue"),
    setQueueAttributes: method("SetQueueAttributes"),
    getQueueAttributes: method("GetQueueAttributes"),
    purgeQueue: method("PurgeQueue"),
    listDeadLetterSourceQueues: method("ListDeadLetterSourceQueues"),
    startMessageMoveTask: method("StartMessageMoveTask"),
    listMessageMoveTasks: method("ListMessageMoveTasks"),
    cancelMessageMoveTask: method("CancelMessageMoveTask"),
    receiveMessage: method("ReceiveMessage"),
    sendMessageBatch: async (input) => {
      const { doubt, output } = await call("SendMessageBatch", input, { timeout: requestTimeout })
      return { Successful: [], Failed: [], ...output, doubt }
    },
    deleteMessageBatch: method("DeleteMessageBatch"),
    changeMessageVisibilityBatch: method("ChangeMessageVisibilityBatch", { most: 1 }),
    accountId: () => Promise.resolve(network.server.settings.account),
    polls: (waitTime) => method("ReceiveMessage", { timeout: waitTime + requestTimeout })
  }
}

/** Makes the driver of a process, whose name is in the server's facts. */
export const make = (host: Host, network: Network, process: string): Driver => {
  let clients = 0
  return {
    connect: (settings) =>
      Effect.acquireRelease(
        Effect.sync(() => ({ client: `${process} ${++clients}`, isClosed: false })),
        (state) =>
          Effect.sync(() => {
            state.isClosed = true
            network.close(state.client)
          })
      ).pipe(
        Effect.map((state) =>
          open(host, network, settings, { client: state.client, process, isClosed: () => state.isClosed })
        )
      )
  }
}
