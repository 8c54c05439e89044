/** The way to know that a server speaks SQS and takes our credentials. */
import { setTimeout as sleep } from "node:timers/promises"
import { parse } from "./address.ts"

/** Fails with the server's own words when it refuses. */
export const handshake = async (address: string, milliseconds: number): Promise<void> => {
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

/** Waits until the server answers; says why it does not when it ended or the time is over. */
export const awaitSqs = async (address: string, milliseconds: number, isAlive: () => boolean | Promise<boolean>) => {
  const deadline = performance.now() + milliseconds
  let reason = ""
  while (performance.now() < deadline) {
    if (!(await isAlive())) return "ended while it started"
    const failed = await handshake(address, Math.min(5000, milliseconds)).then(
      () => undefined,
      (cause: Error) => cause.message
    )
    if (failed === undefined) return undefined
    reason = failed
    await sleep(25)
  }
  return `does not answer SQS calls after ${milliseconds} ms (${reason})`
}
