import type { Span } from '../core/kit/sorted.ts'
import { type NameStrength, secretNameStrength } from './keys.ts'
import { isHarmless } from './references.ts'
import { type FileStyle, secretValues } from './values.ts'

/** A member that names a value, in YAML, JSON, TOML and JavaScript. */
const nameMember = String.raw`(?:name|key|id|variable|field)["']?\s{0,4}[:=]\s{0,4}["']?(?<name>[\w.$-]{1,64})["']?`
/** White space and comments between two members. */
const gap = String.raw`(?:[\s,;]|(?<=[\s,;])(?:#|//)[^\n]{0,200}(?=\n)|/\*[^*]{0,200}\*/){1,80}`
/** Another member between the one with the name and the one with the value. Its own value is a word, or a text in quotes. */
const otherMember = String.raw`["']?(?!(?:name|key|id|value|val)\b)[A-Za-z][\w.-]{0,40}["']?\s{0,4}[:=]\s{0,4}(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'|[^\s,{}[\]"'#]{1,100})`

/** Marks of a name other than a separator after it. Without the group `name`, the name is a secret one. */
const marks: readonly {
  readonly pattern: RegExp
  readonly config?: boolean
  readonly quotedOnly?: boolean
  readonly notInCode?: boolean
}[] = [
  // --password hunter2
  { pattern: /(?<![\w-])--?(?<name>[A-Za-z][\w-]{1,40})[ \t]{1,4}(?![-|&;<>=])/g, config: true },
  // ["--password", "hunter2"]
  { pattern: /["']--?(?<name>[A-Za-z][\w-]{1,40})["']\s{0,4},\s{0,80}(?=["'](?!-))/g, quotedOnly: true },
  // ENV DB_PASSWORD hunter2
  {
    pattern:
      /^[ \t@]*(?:ENV|ARG|setenv|SetEnv|setx|set[ \t]+-[a-z]{1,4}|fastcgi_param|uwsgi_param)[ \t]+(?<name>[\w.-]{1,64})[ \t]+(?!=)/gim,
    config: true,
  },
  // requirepass hunter2
  { pattern: /^[ \t]*(?<name>requirepass|masterauth|bindpw|rootbindpw|rootpw)[ \t]+(?!=)/gim, config: true },
  // storePassword "hunter2"
  { pattern: /^[ \t(:]*(?:setq[ \t]+)?(?<name>[A-Za-z][\w.-]{2,63})[ \t]+(?=["'])/gm, quotedOnly: true },
  // {password, "hunter2"}, {:password "hunter2"}
  {
    pattern: /\{\s{0,4}:?(?<name>[A-Za-z][\w-]{1,63})[\s,]\s{0,4}(?=["'][^"'\n]{1,200}["']\s*[,}])/g,
    quotedOnly: true,
  },
  // variable "db_password" { default = "hunter2" }
  { pattern: /(?<![\w-])variable[ \t]+"(?<name>[\w-]{1,64})"[ \t]*\{[^{}]{0,400}?\bdefault[ \t]*=/g },
  // Dim password As String = "hunter2", string Password { get; set; } = "hunter2"
  { pattern: /(?<name>\b\w{1,64})(?:[ \t]+As[ \t]+[\w.]{1,64}|[ \t]*\{[ \t]*get;[^{}\n]{0,80}\})[ \t]*=[ \t]*(?=")/gi },
  // my password is: hunter2
  {
    pattern:
      /(?<![\w-])(?:password|passphrase|passcode|secret|(?<name>api key|token))[ \t]+(?:is|was)[ \t]*:[ \t]*(?=\S)/gi,
  },
  // name: DB_PASSWORD, value: hunter2
  {
    pattern: new RegExp(
      `(?<![\\w-])(?:parameter|option|env)?${nameMember}${gap}(?:-[ \\t]*)?["']?(?:parameter|option|env)?(?:value|val|default|content)["']?\\s{0,4}[:=]`,
      'gi',
    ),
  },
  // name: DB_PASSWORD, type: string, value: hunter2
  {
    pattern: new RegExp(
      `(?<![\\w-])${nameMember}${gap}(?:${otherMember}${gap}){1,4}["']?(?:value|val)["']?\\s{0,4}[:=]`,
      'gi',
    ),
    notInCode: true,
  },
  // define('DB_PASSWORD', 'hunter2')
  { pattern: /(?<![\w.])define\(\s{0,4}["'](?<name>[\w.-]{1,64})["']\s{0,4},(?=\s{0,4}["'])/gi },
  // set("password", "hunter2")
  { pattern: /[(,]\s{0,4}["'](?<name>[\w.-]{1,64})["']\s{0,4},(?=\s{0,4}["'])/g, quotedOnly: true },
]

const pgpass =
  /^(?:\*|localhost|[\w-]{1,63}(?:\.[\w-]{1,63}){1,10}|\/[\w./-]{1,100}):(?:\*|\d{2,5}):[^:\s]{1,64}:[^:\s]{1,64}:(?<value>\S+)$/gm

/** Values in a form of their own. The group `value` is at the end of the match. */
const forms: readonly RegExp[] = [
  // <password>hunter2</password>, <entry key="db.password">hunter2</entry>
  /<(?<name>[\w:.-]{1,64})(?:\s[^<>]{0,200})?>\s{0,80}(?:<value>\s{0,80})?(?:<!\[CDATA\[)?(?<value>[^<]+)(?=<\/)/g,
  /<[\w:.-]{1,64}\s[^<>]{0,200}?(?:key|name|id)=["'](?<name>[\w.:-]{1,64})["'][^<>]{0,200}>\s{0,80}(?:<value>)?(?<value>[^<]+)(?=<\/)/gi,
  /(?<![\w-])(?:identified\s{1,4}by|(?<name>password|passwd)(?=\s{1,4}['"]))\s{1,4}(?:password\s{1,4})?['"](?<value>[^'"\r\n]+)/gi,
  /(?<![\w-])(?:curl|wget|http|https)\b[^\r\n|;]{0,400}?\s(?:-u|--user|--proxy-user)[ =]["']?(?<value>[^\s"':]{1,128}:[^\s"']+)/g,
  /(?<![\w-])(?:mysql|mysqldump|mysqladmin|mariadb|mongo|mongosh)\b[^\r\n|;]{0,200}?\s-p ?["']?(?<value>[^\s"'-][^\s"']*)/g,
  /(?<![\w-])(?:sshpass\s{1,4}-p|redis-cli\b[^\r\n|;]{0,200}?\s-a)\s{0,4}["']?(?<value>[^\s"']+)/g,
  // docker login -p hunter2, http -a bob:hunter2
  /(?<![\w-])docker\s{1,4}login\b[^\r\n|;]{0,200}?\s-p[ =]["']?(?<value>[^\s"']+)/g,
  /(?<![\w-])(?:http|https)\s[^\r\n|;]{0,200}?(?:-a|--auth)[ =]["']?(?<value>[^\s"':]{1,128}:[^\s"']+)/g,
  /ConvertTo-SecureString\s{1,4}(?:-String\s{1,4})?["'](?<value>[^"'\r\n]+)/gi,
  // set password for bob = password('hunter2')
  /=\s{0,4}password\(\s{0,4}'(?<value>[^'\r\n]+)/gi,
  // A part of a form: it ends before the line of the boundary.
  /content-disposition:[^\r\n]{0,200}?\bname="?(?<name>[\w.[\]-]{1,64})"?[^\r\n]{0,200}\r?\n(?:[\w-]{1,64}:[^\r\n]{0,400}\r?\n){0,8}\r?\n(?<value>[\s\S]{1,4096}?)(?=\r?\n--)/gi,
  // A line of .netrc.
  /^[ \t]*(?:machine[ \t]+\S{1,253}|default)\s[^#]{0,400}?\bpassword[ \t]+(?<value>"[^"\r\n]*"|\S+)/gm,
  // @Value("${db.password:hunter2}"), ${DB_PASSWORD:-hunter2}; ${TOKEN:0:8} is a part of a variable.
  /\$\{(?<name>(?!secrets?:)[\w.-]{1,64}?)(?::[-=+]?|[-=+])(?<value>(?! ?-?\d{1,3}(?::|\}))[^{}\s"'`$?:=+-][^{}\r\n"'`]{0,200})(?=\})/g,
  // value: hunter2, then name: DB_PASSWORD
  new RegExp(
    `(?<![\\w-])(?:value|val)["']?(?:\\s{0,4}:|\\s{1,4}=)\\s{0,4}(?<quote>["'])(?<value>[^"'\\n]{1,400})(?=\\k<quote>${gap}["']?${nameMember})`,
    'gi',
  ),
  new RegExp(
    `(?<![\\w-])(?:value|val)["']?(?::[ \\t]{1,4}|[ \\t]{1,4}=[ \\t]{1,4})(?<value>[^\\s"'{}[\\],#$|>][^\\n"'{}(),;]{0,200})(?=${gap}["']?${nameMember})`,
    'gi',
  ),
  pgpass,
]

/** A match of {@link marks} and {@link forms}, except {@link pgpass}, contains one of these characters. */
const signs = /[\s"',;<{]/

/** Finds values behind a name without a separator, and values in a form of their own. */
export function findNotationSecrets(text: string, style: FileStyle): readonly Span[] {
  const spans: Span[] = []
  // Most names, options and paths have no such sign: a start that scans only these compiles no patterns.
  const isBare = !signs.test(text)
  for (const { pattern, config = false, quotedOnly = false, notInCode = false } of isBare ? [] : marks) {
    if (notInCode && style === 'code') continue
    for (const match of text.matchAll(pattern)) {
      const kind: NameStrength = secretNameStrength(match.groups?.name ?? 'password')
      if (kind === undefined) continue
      const from = match.index + match[0].length
      const own = quotedOnly || !config ? style : style === 'prose' ? 'config' : style
      const assignment = { from, kind, style: own, first: false, indent: 0, quotedOnly }
      for (const span of secretValues(text, assignment)) spans.push({ ...span, key: match.index })
    }
  }
  for (const pattern of isBare ? [pgpass] : forms)
    for (const match of text.matchAll(pattern)) {
      const { name, value = '' } = match.groups ?? {}
      if (name !== undefined && (secretNameStrength(name) ?? 'weak') === 'weak') continue
      const bare = value.trimEnd()
      if (isHarmless(bare) || /^\d+:\d+$/.test(bare) || bare.startsWith('[redacted]') || bare === '') continue
      const start = match.index + match[0].length - value.length
      spans.push({ start, end: start + bare.length, key: match.index })
    }
  return spans
}
