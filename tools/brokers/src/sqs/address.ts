/** Addresses of SQS: `sqs://<key>:<secret>@<host>:<port>?region=<region>`, and `sqs://<region>[/<account>]` for AWS. */

export interface Address {
  /** `undefined` for AWS itself, whose endpoint follows from the region. */
  readonly endpoint: string | undefined
  readonly region: string
  /** `undefined` for the credentials that the SDK finds. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined
}

export const region = "eu-west-1"

/** The address of a server on this machine. */
export const local = (port: number, secret: string): string =>
  `sqs://requeue:${secret}@127.0.0.1:${port}?region=${region}`

/** Parses an address; `undefined` if it has neither form. */
export const parse = (text: string): Address | undefined => {
  const url = URL.parse(text)
  if (url === null || url.protocol !== "sqs:" || url.hostname === "") return undefined
  const given = url.searchParams.get("region")
  if (given === null && url.port !== "") return undefined
  const [accessKeyId, secretAccessKey] = [decodeURIComponent(url.username), decodeURIComponent(url.password)]
  return {
    endpoint: given === null ? undefined : `http${url.searchParams.get("tls") === "true" ? "s" : ""}://${url.host}`,
    region: given ?? url.hostname,
    credentials: accessKeyId === "" ? undefined : { accessKeyId, secretAccessKey }
  }
}
