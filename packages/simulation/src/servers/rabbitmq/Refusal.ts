/** Refusals of the server: it closes a channel or a connection, with a code and a text. */

/** The names of the reply codes. https://www.rabbitmq.com/amqp-0-9-1-reference#constants */
const names = {
  311: "CONTENT_TOO_LARGE",
  312: "NO_ROUTE",
  320: "CONNECTION_FORCED",
  403: "ACCESS_REFUSED",
  404: "NOT_FOUND",
  405: "RESOURCE_LOCKED",
  406: "PRECONDITION_FAILED",
  501: "FRAME_ERROR",
  503: "COMMAND_INVALID",
  530: "NOT_ALLOWED",
  540: "NOT_IMPLEMENTED",
  541: "INTERNAL_ERROR"
} as const

/** A reply code. */
export type Code = keyof typeof names

/** The codes that close the whole connection. */
const ofConnection: ReadonlySet<Code> = new Set([320, 501, 503, 530, 540, 541])

/** A refusal: the server closes a channel or a connection because of it. */
export class Refusal extends Error {
  readonly code: Code
  readonly text: string
  readonly closesConnection: boolean
  /** The method that was refused, with the driver's name. */
  method = ""

  constructor(code: Code, text: string) {
    super(`${names[code]} - ${text}`)
    this.code = code
    this.text = this.message
    this.closesConnection = ofConnection.has(code)
  }
}

/** The driver's words for a refusal. */
export const format = ({ code, text }: Refusal): string =>
  `${code} (${names[code].replaceAll("_", "-")}) with message "${text}"`
