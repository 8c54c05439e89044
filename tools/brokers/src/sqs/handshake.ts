/** Lists queues. This checks that a server speaks SQS and accepts the credentials. */
import { answerTimeout } from "../ready.ts"
import { parse } from "./address.ts"

/** The error of the SDK, or of the network. */
interface Failure {
  readonly Code?: string
  readonly code?: string
  readonly message: string
  readonly name: string
}

/** Fails with the server's own message if it refuses, and after `milliseconds`. */
export const handshake = async (address: string, milliseconds = answerTimeout): Promise<void> => {
  const { credentials, endpoint, region } = parse(address) ?? {}
  // Imported lazily: other brokers start without the SDK.
  const { ListQueuesCommand, SQSClient } = await import("@aws-sdk/client-sqs")
  const client = new SQSClient({
    maxAttempts: 1,
    requestHandler: { requestTimeout: milliseconds, throwOnRequestTimeout: true },
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials })
  })
  await client
    .send(new ListQueuesCommand({ MaxResults: 1 }))
    .catch((cause: Failure) => {
      const { Code, code, message, name } = cause
      // The server knows the credentials; a denied call proves nothing about others.
      if (Code === "AccessDenied" || name === "AccessDeniedException") return
      throw new Error(`${code ?? name}${message === "" ? "" : `: ${message}`}`, { cause })
    })
    .finally(() => client.destroy())
}
