import { generateKeyPairSync, randomBytes, randomInt, randomUUID } from 'node:crypto'

/** A random secret in the notation of a file, and its parts that must not be shown. */
export interface Canary {
  readonly name: string
  /** The planted text: a value of settings, or a whole line. */
  readonly planted: string
  /** The parts that are secret. */
  readonly secret: readonly string[]
  /** Parts that must stay, such as the host of a URL. */
  readonly kept?: readonly string[]
  /** Whether detectors recognize it without the name of a secret. */
  readonly known: boolean
}

const pick = (alphabet: string, length: number) =>
  Array.from({ length }, () => alphabet[randomInt(alphabet.length)] ?? '').join('')

const upper = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const lower = upper.toLowerCase()
const digits = '0123456789'
const alnum = upper + lower + digits
const hex = (length: number) => randomBytes(length).toString('hex').slice(0, length)
/** Returns a random word of letters in both cases and digits, each at least once. */
const word = (length: number) => `${pick(upper, 1)}${pick(digits, 1)}${pick(lower, 1)}${pick(alnum, length - 3)}`

const token = (name: string, planted: string, secret: readonly string[] = [planted]): Canary => ({
  name,
  planted,
  secret,
  known: true,
})

/** Returns a random token of every kind that detectors recognize. */
export function tokens(): readonly Canary[] {
  const jwt = [
    { alg: 'HS256', typ: 'JWT' },
    { sub: word(10), iat: randomInt(1e9) },
  ].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  const signature = randomBytes(32).toString('base64url')
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ type: 'sec1', format: 'pem' }).toString().trim()
  const body = pem.split('\n').slice(1, -1)
  return [
    token('AWS access key id', `AKIA${pick(`${upper}234567`, 16)}`),
    token('AWS temporary key id', `ASIA${pick(`${upper}234567`, 16)}`),
    token('GitHub token', `ghp_${word(36)}`),
    token('GitHub fine-grained token', `github_pat_${word(22)}_${word(59)}`),
    token('GitLab token', `glpat-${word(20)}`),
    token('Slack bot token', `xoxb-${pick(digits, 12)}-${pick(digits, 13)}-${word(24)}`),
    token('Slack app token', `xapp-1-${word(11)}-${pick(digits, 13)}-${hex(64)}`),
    token('npm token', `npm_${word(36)}`),
    token('PyPI token', `pypi-AgEIcHlwaS5vcmc${word(60)}`),
    token('Stripe key', `sk_live_${word(24)}`),
    token('Stripe restricted key', `rk_live_${word(24)}`),
    token('Stripe webhook secret', `whsec_${word(32)}`),
    token('GCP API key', `AIza${word(35)}`),
    token('GCP OAuth secret', `GOCSPX-${word(28)}`),
    token('OpenAI key', `sk-${word(48)}`),
    token('OpenAI project key', `sk-proj-${word(40)}T3BlbkFJ${word(40)}`),
    token('Anthropic key', `sk-ant-api03-${word(93)}AA`),
    token('Hugging Face token', `hf_${pick(upper + lower, 34)}`),
    token('SendGrid key', `SG.${word(22)}.${word(43)}`),
    token('Mailgun key', `key-${hex(32)}`),
    token('Twilio account', `AC${hex(32)}`),
    token('Twilio key', `SK${hex(32)}`),
    token('Telegram bot', `${pick('123456789', 10)}:AA${word(33)}`),
    token('Azure storage key', `${word(86)}==`),
    token('Azure client secret', `${word(3)}8Q~${word(34)}`),
    token('DigitalOcean token', `dop_v1_${hex(64)}`),
    token('Vault token', `hvs.${word(24)}`),
    token('Databricks token', `dapi${hex(32)}`),
    token('Grafana token', `glsa_${word(32)}_${hex(8)}`),
    token('Docker token', `dckr_pat_${word(27)}`),
    token('New Relic key', `NRAK-${pick(upper + digits, 27)}`),
    token('age key', `AGE-SECRET-KEY-1${pick(upper + digits, 58)}`),
    token('Shopify token', `shpat_${hex(32)}`),
    token('Linear key', `lin_api_${word(40)}`),
    token('JWT', [...jwt, signature].join('.'), [...jwt.map((part) => part.slice(6)), signature]),
    token('bcrypt hash', `$2b$12$${pick(`./${alnum}`, 53)}`),
    token('EC private key', pem, body),
    token('EC private key on one line', pem.replaceAll('\n', '\\n'), body),
    token('private key without armour', body.join(''), [body.join('').slice(12)]),
    token('Bearer hex', `Authorization: Bearer ${hex(40)}`, []),
  ].map((canary) =>
    canary.secret.length > 0 ? canary : { ...canary, secret: [canary.planted.split(' ').at(-1) ?? ''] },
  )
}

const address = (name: string, planted: string, secret: string, kept: string): Canary => ({
  name,
  planted,
  secret: [secret],
  kept: [kept],
  known: true,
})

/** Returns connection strings and addresses whose hosts are not secret. */
export function addresses(): readonly Canary[] {
  const pw = () => word(18)
  const make = (name: string, write: (password: string) => string, kept = 'db.example.net') => {
    const password = pw()
    return address(name, write(password), password, kept)
  }
  return [
    make('PostgreSQL URL', (p) => `postgres://app:${p}@db.example.net:5432/shop`),
    make('MySQL URL', (p) => `mysql://root:${p}@db.example.net/shop`),
    make('MongoDB URL', (p) => `mongodb+srv://app:${p}@db.example.net/?w=1`),
    make('Redis URL', (p) => `redis://:${p}@db.example.net:6379/0`),
    make('AMQP URL', (p) => `amqp://app:${p}@db.example.net:5672/%2f`),
    make('basic auth URL', (p) => `https://app:${p}@db.example.net/path`),
    make('URL with an unescaped slash', (p) => `postgres://app:a/${p}@db.example.net/x`),
    make('URL with a default', (p) => `postgres://app:\${DB_PASS:-${p}}@db.example.net/x`),
    make('token URL', (p) => `https://${p}${word(10)}@db.example.net/repo.git`),
    make('JDBC', (p) => `jdbc:postgresql://db.example.net/shop?user=app&password=${p}`),
    make('JDBC Oracle', (p) => `jdbc:oracle:thin:app/${p}@db.example.net:1521:xe`),
    make('ODBC', (p) => `Driver={ODBC};Server=db.example.net;Uid=app;Pwd=${p};Encrypt=yes`),
    make('ADO', (p) => `Server=db.example.net;User Id=app;Password=${p};Pooling=true`),
    make('libpq DSN', (p) => `host=db.example.net user=app password=${p} dbname=shop`),
    make(
      'Azure storage',
      (p) =>
        `DefaultEndpointsProtocol=https;AccountName=x;AccountKey=${p}${word(60)}==;EndpointSuffix=core.windows.net`,
      'core.windows.net',
    ),
    make(
      'SAS',
      (p) => `https://x.blob.core.windows.net/c?sv=2024-01-01&sig=${p}%3D&se=2030`,
      'x.blob.core.windows.net',
    ),
    make(
      'presigned S3',
      (p) => `https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4&X-Amz-Signature=${p}${hex(40)}&X-Amz-Expires=60`,
      'b.s3.amazonaws.com',
    ),
    make(
      'Slack webhook',
      (p) => `https://hooks.slack.com/services/T${pick(upper, 8)}/B${pick(upper, 8)}/${p}`,
      'hooks.slack.com',
    ),
    make(
      'Discord webhook',
      (p) => `https://discord.com/api/webhooks/${pick(digits, 18)}/${p}${word(40)}`,
      'discord.com',
    ),
    make('query token', (p) => `https://db.example.net/api?access_token=${p}&page=2`),
  ]
}

/** Returns a password that can only be recognized by its name. */
export function password(): Canary {
  return { name: 'password', planted: word(14), secret: [], known: false }
}

/** Returns values that look random and are no secrets. */
export function harmless(): Readonly<Record<string, string>> {
  return {
    uuid: randomUUID(),
    'git oid': hex(40),
    sha256: hex(64),
    md5: hex(32),
    integrity: `sha512-${randomBytes(64).toString('base64')}`,
    'short oid': hex(7),
    'image digest': `registry.example.net/app@sha256:${hex(64)}`,
    'data image': `data:image/png;base64,${Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), randomBytes(300)]).toString('base64')}`,
    version: '^11.7.1',
    date: '2026-11-21T12:53:18+09:00',
    address: 'https://example.net/a/b?page=2#top',
    path: '/usr/share/doc/libexample-perl/README.Debian',
    name: 'com.example.project.AbstractSingletonProxyFactoryBean',
    kebab: 'my-very-long-service-name-in-production-eu-west-1',
    objectid: hex(24),
    color: '#a1b2c3',
    cidr: '10.0.0.0/8',
    semver: '1.2.3-beta.4+build.567',
  }
}

/** Returns up to three eight-character pieces of secrets in a text. */
export function leaks(output: string, secrets: Iterable<string>): readonly string[] {
  const found: string[] = []
  for (const secret of secrets)
    for (let at = 0; at + 8 <= secret.length && found.length < 3; at++) {
      const piece = secret.slice(at, at + 8)
      if (output.includes(piece)) found.push(piece)
    }
  return found
}
