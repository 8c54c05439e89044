/** Codes in messages of errors: numbers and words with digits that distinguish causes. */

const end = String.raw`(?![\p{L}\p{N}_]|[.,]\d)`

/** The names of HTTP status codes, by their first words. https://www.rfc-editor.org/rfc/rfc9110#name-status-codes */
const statuses = [
  "OK|Created|Accepted|No Content|Moved|Found|See Other|Not (?:Modified|Found|Acceptable|Implemented)|Temporary Redirect",
  "Bad (?:Request|Gateway)|Unauthorized|Payment Required|Forbidden|Method Not|Proxy Auth|Request|Conflict|Gone|Length",
  "Precondition|Payload|Content Too|URI Too|Unsupported|Range|Expectation|Misdirected|Unprocessable|Locked|Failed Dep",
  "Too (?:Early|Many)|Upgrade|Unavailable|Internal Server|Service|Gateway|HTTP Version|Insufficient|Loop|Network"
].join("|")

/** Words after which a number is a status, unless it counts something. */
const answers =
  "[Rr]esponded|[Rr]eturned|[Aa]nswered|[Gg]ot|[Rr]eceived|[Rr]esponse|[Ff]ailed|[Ff]ailure|[A-Za-z]*[Ee]rror"
const after = "from|by|for|on|at|in|after|while|and|instead|because|when|to"

/** The classes of SQLSTATE that databases have. https://www.postgresql.org/docs/current/errcodes-appendix.html */
const sqlState = String.raw`(?:0[0-9A-FLPZ]|2[0-9BDF]|3[0-9BDF]|4[024]|5[34578]|72|F0|HV|HY|IM|P0|XX)[\dA-Z]{3}`

/** An enhanced status code of mail. https://www.rfc-editor.org/rfc/rfc3463 */
const enhanced = String.raw`[245]\.\d{1,3}\.\d{1,3}`

/** Nothing after a code that it would count. */
const alone = String.raw`(?=$|[):;,\]]|\.(?: |$)| [{(<["'])`

const keys = "(?:(?:[A-Za-z]*[a-z]C|[A-Za-z]+_c|[Cc])ode|(?:[A-Za-z]*[a-z]S|[A-Za-z]+_s|[Ss])tatus|[Ee]rrno|signal)"

/** Texts that are kept, except for quotes in them. */
export const sources: ReadonlyArray<string> = [
  // statusCode: 503, {"code": 503}, HTTP/1.1 503, errno -111, SQLSTATE[42P01], exited with code 137
  `${keys}[ :=(#]{0,3}-?\\d{1,5}(?:[ -]${enhanced})?${end}`,
  `(?<=[{,] ?)"${keys}" ?: ?-?\\d{1,5}${end}`,
  String.raw`(?:HTTP|http)(?:/\d(?:\.\d)?)?(?: (?:error|status|response))?:?[ (]?[1-5]\d\d${end}`,
  `(?:SQLSTATE|SqlState|sqlstate|code)[ :=([]{1,3}['"]?(?=[A-Z]{0,4}\\d)[\\dA-Z]{5}${end}`,
  String.raw`(?:ORA|NJS|TNS)-\d{3,5}${end}`,
  // ERROR 1062 (23000), error: 23505, Twilio error 21211
  String.raw`ERROR \d{4} \([\dA-Z]{5}\)`,
  String.raw`[A-Za-z]*[Ee]rror:? (?:${sqlState}|\d{4,5})${alone}`,
  // HRESULTs of Windows, and an errno that is the whole message
  String.raw`(?<=^|[\s([{=,:])0x8[\da-fA-F]{7}${end}`,
  String.raw`^-\d{2,5}$`,
  // SMTP 550, 550 5.1.1 and 535-5.7.8
  String.raw`(?<=^|[\s([{=,:])(?:SMTP|smtp)[ :]{1,2}[2-5]\d\d${end}`,
  String.raw`(?<=^|[\s:])[245]\d\d[ -]${enhanced}${end}`,
  // [429] Too many, (502), Bad response (502), Failed to fetch: 403
  String.raw`^(?:\[[1-5]\d\d\]|\([1-5]\d\d\))(?=$|:?(?: |$))`,
  String.raw`\([45]\d\d\)(?=\.?$)`,
  String.raw`(?<=^|[\s([{=,:])[Ff]ailed to [\p{L} ]{1,40}: [45]\d\d$`,
  // 503 Service Unavailable, and 404 (NOT-FOUND)
  String.raw`(?<=^|[\s([{=,:#])[1-5]\d\d(?: -)? (?:(?:${statuses})|\(\p{Lu})\p{L}*${end}`,
  String.raw`^[45]\d\d(?:(?=$|:)| \p{Lu}\p{L}*${end})`,
  String.raw`(?:${answers})(?: with| by)?:? ?\(?[2-5]\d\d(?=$|[):;\]]|[.,](?: |$)| [{(<["']| (?:${after})(?![\p{L}\p{N}_]))`
]

/** Names with digits: encodings, protocols, constants, classes of errors, and codes of databases. */
const codes: ReadonlyArray<RegExp> = [
  /^(?:ipv[46]|utf(?:8|16|32)|sha\d{1,3}|md5|base(?:32|64)|s3|ec2|http[123]|h2|oauth2?|x509|u?int\d{1,2}|float\d\d|k8s|v\d)$/i,
  /^(?!.*\d{3})[A-Z][A-Z\d]*(?:_\d{0,2}[A-Z][A-Z\d]*)+$/,
  // Steps of a program
  /^(?:step|stage|phase|level|tier)_?\d{1,2}$/i,
  /^(?!.*\d{3})[A-Z].*(?:Error|Exception|Fault|Failure)$/,
  // E2BIG; P2002 of Prisma, E11000 of MongoDB; H12 of Heroku; TS2322; 42P01, XX000 and HY000 of SQL
  /^(?:E2BIG|[A-Z]\d{4,5}|[HRL]\d\d|TS\d{4,5}|\d\dP\d\d|(?:XX|HY)\d{3})$/
]

/** Whether a word with digits is the same in all failures of one cause. */
export const isCode = (word: string): boolean => codes.some((code) => code.test(word))
