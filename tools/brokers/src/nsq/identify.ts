/**
 * Sends IDENTIFY to an nsqd. This checks that it accepts connections, and reads its version. It needs no TLS and no secret, even
 * if the nsqd demands them afterwards. This package needs no driver for it. https://nsq.io/clients/tcp_protocol_spec.html
 */
import { connect } from "node:net"
import { answerTimeout } from "../ready.ts"

const hello = (): Buffer => {
  const body = JSON.stringify({ client_id: "requeue", user_agent: "requeue-brokers", feature_negotiation: true })
  const size = Buffer.alloc(4)
  size.writeUInt32BE(Buffer.byteLength(body))
  return Buffer.concat([Buffer.from("  V2IDENTIFY\n"), size, Buffer.from(body)])
}

const versionIn = (answer: string): string | undefined => {
  try {
    const { version }: { readonly version?: unknown } = JSON.parse(answer)
    return typeof version === "string" ? version : undefined
  } catch {
    return undefined
  }
}

/** Returns the nsqd's version. Fails after `milliseconds`. */
export const identify = (address: string, milliseconds = answerTimeout): Promise<string> => {
  const url = new URL(address)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || 4150) })
    let input = Buffer.alloc(0)
    const end = (finish: () => void) => {
      socket.destroy()
      clearTimeout(timer)
      finish()
    }
    const fail = (reason: string) => end(() => reject(new Error(reason)))
    const timer = setTimeout(() => fail(`no answer of an nsqd within ${milliseconds} ms`), milliseconds)
    socket.on("connect", () => socket.write(hello()))
    socket.on("error", (cause) => fail(cause.message))
    socket.on("close", () => fail("the connection was closed before an nsqd answered"))
    socket.on("data", (bytes) => {
      input = Buffer.concat([input, bytes])
      if (input.length < 4) return
      const size = input.readUInt32BE(0)
      if (size > 1 << 16) return fail("the server does not speak NSQ's protocol")
      if (input.length < 4 + size) return
      const version = versionIn(input.toString("utf8", 8, 4 + size))
      if (version === undefined) fail("the server does not speak NSQ's protocol")
      else end(() => resolve(version))
    })
  })
}
