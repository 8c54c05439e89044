/** The way to know that a server speaks SQS and takes our credentials. */
import { patience } from "../ready.ts"
import { parse } from "./address.ts"

/** Fails with the server's own words when it refuses. */
export const handshake = async (address: string, milliseconds = patience): Promise<void> => {
  const { credentials, endpoint, region } = parse(address) ?? {}
  // Loaded when needed: whoever starts another broker does not wait for the SDK.
  const { ListQueuesCommand, SQSClient } = await import("@aws-sdk/client-sqs")
  const client = new SQSClient({
    maxAttempts: 1,
    requestHandler: { requestTimeout: milliseconds, throwOnRequestTimeout: true },
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials })
  })
  try {
    await client.send(new ListQueuesCommand({ MaxResults: 1 }))
  } catch (cause) {
    const { Code, code, message, name } = cause as { Code?: string; code?: string; message: string; name: string }
    // It knows us: that this one call is not ours to make says nothing about the others.
    if (Code === "AccessDenied" || name === "AccessDeniedException") return
    throw new Error(`${code ?? name}${message === "" ? "" : `: ${message}`}`, { cause })
  } finally {
    client.destroy()
  }
}
