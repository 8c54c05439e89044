/** ARNs of queues: `arn:aws:sqs:<region>:<account>:<name>`. */

export interface Arn {
  readonly region: string
  readonly account: string
  readonly name: string
}

export const parse = (text: string): Arn => {
  const [, , , region = "", account = "", name = ""] = text.split(":")
  return { region, account, name }
}

/** Makes the ARN of another queue of the same account and region. */
export const sibling = (text: string, name: string): string => [...text.split(":").slice(0, -1), name].join(":")

/** The account in a queue's URL. */
export const accountOf = (url: string): string => url.split("/").at(-2) ?? ""
