/**
 * Opens an AMQP 0-9-1 connection and closes it again. This checks that a server accepts connections, and reads its version. This
 * package needs no driver for it. https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf
 */
import { connect } from "node:net"
import { connect as connectTls } from "node:tls"
import { answerTimeout } from "./ready.ts"

const short = (text: string) => Buffer.concat([Buffer.from([Buffer.byteLength(text)]), Buffer.from(text)])
const long = (bytes: Buffer) => {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}
const frame = (type: number, method: number, ...args: ReadonlyArray<Buffer>) => {
  // A method of the class Connection, on channel 0.
  const payload = Buffer.concat([Buffer.from([0, 10, 0, method]), ...args])
  return Buffer.concat([Buffer.from([type, 0, 0]), long(payload), Buffer.from([0xce])])
}

// Without this a server only closes the socket on a wrong password.
const properties = long(
  Buffer.concat([
    short("capabilities"),
    Buffer.from("F"),
    long(Buffer.concat([short("authentication_failure_close"), Buffer.from("t"), Buffer.from([1])]))
  ])
)

const decode = (text: string) => decodeURIComponent(text)

/** Takes the credentials out of an address. */
export const redact = (url: string): string => url.replace(/^(\w+:\/\/)?.*@/, "$1***@")

/** Returns the server's version. Fails with the server's own message if it refuses, and after `milliseconds`. */
export const handshake = (address: string, milliseconds = answerTimeout): Promise<string> => {
  const url = new URL(address)
  const host = url.hostname === "" ? "localhost" : url.hostname.replace(/^\[|\]$/g, "")
  const secure = url.protocol === "amqps:"
  const port = Number(url.port || (secure ? 5671 : 5672))
  const login = Buffer.from(`\0${decode(url.username) || "guest"}\0${decode(url.password) || "guest"}`)
  const vhost = decode(url.pathname.slice(1)) || "/"
  return new Promise((resolve, reject) => {
    const socket = secure ? connectTls({ host, port, servername: host }) : connect({ host, port })
    let input = Buffer.alloc(0)
    let version = "unknown"
    const end = (finish: () => void) => {
      socket.destroy()
      clearTimeout(timer)
      finish()
    }
    const fail = (reason: string) => end(() => reject(new Error(reason)))
    const timer = setTimeout(() => fail(`no AMQP handshake within ${milliseconds} ms`), milliseconds)
    const onMethod = (method: number, args: Buffer) => {
      if (method === 10) {
        const at = args.indexOf("\x07versionS", 0, "latin1")
        if (at >= 0) version = args.toString("utf8", at + 13, at + 13 + args.readUInt32BE(at + 9))
        socket.write(frame(1, 11, properties, short("PLAIN"), long(login), short("en_US")))
      } else if (method === 30) {
        socket.write(frame(1, 31, args.subarray(0, 8)))
        socket.write(frame(1, 40, short(vhost), short(""), Buffer.from([0])))
      } else if (method === 41) {
        // Closes with code 200, and does not wait for the reply.
        socket.write(frame(1, 50, Buffer.from([0, 200]), short(""), Buffer.alloc(4)), () => end(() => resolve(version)))
      } else if (method === 50) fail(args.toString("utf8", 3, 3 + args.readUInt8(2)))
    }
    socket.on(secure ? "secureConnect" : "connect", () => socket.write(Buffer.from("AMQP\0\0\x09\x01", "latin1")))
    socket.on("error", (cause) => fail(cause.message))
    socket.on("close", () => fail("the connection was closed during the AMQP handshake"))
    socket.on("data", (bytes) => {
      input = Buffer.concat([input, bytes])
      if (input.subarray(0, 4).toString("latin1") === "AMQP") return fail("the server speaks another AMQP version")
      if (input.length > 0 && input[0] !== 1 && input[0] !== 8) return fail("the server does not speak AMQP")
      while (input.length >= 8 && input.length >= 8 + input.readUInt32BE(3)) {
        const size = input.readUInt32BE(3)
        if (input[0] === 1) onMethod(input.readUInt16BE(9), input.subarray(11, 7 + size))
        input = input.subarray(8 + size)
      }
    })
  })
}
