/**
 * AWS' own extended client for Python, for tests of the format that it shares with ours.
 * https://github.com/awslabs/amazon-sqs-python-extended-client-lib
 */
import { Unavailable } from "../Broker.ts"
import { python } from "../python.ts"

const version = "1.0.1"

/**
 * Returns a Python interpreter that can import `sqs_extended_client` and `boto3`.
 *
 * @throws Unavailable without Python
 */
export const extendedClient = async (say: (line: string) => void = console.error): Promise<string> => {
  if (process.env["REQUEUE_NO_SERVERS"] !== undefined) throw new Unavailable("nothing is downloaded here")
  const packages = [`amazon-sqs-extended-client==${version}`, "boto3==1.44.8"]
  return python(`sqs-extended-client-${version}`, "about 16 MB from PyPI", packages, say)
}
