import { defined } from '../core/kit/object.ts'
import type { Span } from '../core/kit/sorted.ts'

interface Shape {
  /** The pattern is tried only if the text contains one of these. */
  readonly literals: readonly string[]
  readonly pattern: RegExp
  readonly check?: (match: string) => boolean
}

const shape = (literals: string, pattern: RegExp, check?: (match: string) => boolean): Shape => ({
  literals: literals.split(' '),
  pattern,
  ...defined({ check }),
})

const mixed = (text: string) => /\d/.test(text) && /[a-z]/i.test(text)
const random = (text: string) => /\d/.test(text) && /[A-Z]/.test(text) && /[a-z]/.test(text)

const shapes: readonly Shape[] = [
  shape(
    'AKIA ASIA ABIA ACCA AGPA AIDA AROA AIPA ANPA ANVA APKA',
    /(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|APKA)[A-Z2-7]{16}(?![A-Z0-9])/g,
  ),
  shape('amzn.mws.', /amzn\.mws\.[0-9a-f-]{36}/g),
  shape('ABSK', /ABSK[A-Za-z0-9+/]{100,}={0,2}/g),
  shape('AIza', /AIza[\w-]{35}/g),
  shape('GOCSPX-', /GOCSPX-[\w-]{20,}/g),
  shape('ya29.', /ya29\.[\w.-]{20,}/g),
  shape('1//0', /(?<![\w/])1\/\/0[\w-]{20,}/g),
  // 64 bytes in base64: a key of Azure Storage, Cosmos DB, Batch. The digest sha512 is as long.
  shape('==', /(?<![A-Za-z0-9+/]|sha512-)[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])/g),
  shape('Q~', /(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}/g),
  shape('AZDO', /[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}/g),
  shape('LTAI', /(?<!\w)LTAI[A-Za-z0-9]{12,26}/g, mixed),
  shape('dop_v1_ doo_v1_ dor_v1_', /do[opr]_v1_[0-9a-f]{64}/g),
  shape('v1.0-', /v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}/g),
  shape('HRKU-', /HRKU-[\w-]{36,}/g),
  shape('tskey-', /tskey-[a-z]+-[\w-]{10,}/g),
  shape('FlyV1 fm2_ fo1_', /(?:FlyV1 )?f(?:m[12]|o1)_[\w+/=,-]{40,}/g),
  shape('pscale_', /pscale_(?:tkn|pw|oauth)_[\w=.-]{20,}/g),
  shape('sbp_ sb_secret_', /sb(?:p_[0-9a-f]{40}|_secret_[\w-]{20,})/g),
  shape('nfp_', /nfp_[A-Za-z0-9]{36,}/g),
  shape('pul-', /(?<!\w)pul-[0-9a-f]{40}/g),
  shape('.atlasv1.', /[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}/g),
  shape('hvs. hvb. hvr.', /(?<!\w)hv[sbr]\.[\w-]{24,}/g),
  shape('dp.', /(?<![\w.])dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,}/g),
  shape('ghp_ gho_ ghu_ ghs_ ghr_', /gh[pousr]_[A-Za-z0-9_]{30,}/g),
  shape('github_pat_', /github_pat_\w{22,}/g),
  shape(
    'glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glimt- glagent- glffct-',
    /gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|ffct)-[\w.-]{20,}/g,
  ),
  shape('ATATT3 ATCTT3 ATBB', /AT(?:ATT3|CTT3|BB)[\w=-]{28,}/g, mixed),
  shape('npm_', /(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}/g),
  shape('pypi-', /pypi-[\w-]{50,}/g),
  shape('rubygems_', /rubygems_[0-9a-f]{48}/g),
  shape('oy2', /(?<!\w)oy2[a-z0-9]{43}(?!\w)/g),
  shape('cio', /(?<!\w)cio[A-Za-z0-9]{32}(?!\w)/g, random),
  shape('dckr_', /dckr_(?:pat|oat)_[\w-]{20,}/g),
  shape('AKCp', /(?<!\w)AKCp\w{60,}/g),
  shape('sqp_ squ_ sqa_', /(?<!\w)sq[pua]_[0-9a-f]{40}/g),
  shape('CCIPAT_', /CCIPAT_[A-Za-z0-9]+_[0-9a-f]{40}/g),
  shape('bkua_', /bkua_[0-9a-f]{40}/g),
  shape('sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_', /(?<![A-Za-z0-9])[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}/g),
  shape('whsec_', /whsec_[\w+/=]{20,}/g),
  shape('sq0', /sq0[a-z]{3}-[\w-]{22,}/g),
  shape('EAAA', /(?<!\w)EAAA[\w-]{56,}/g, random),
  shape('access_token$', /access_token\$(?:production|sandbox)\$[0-9a-z]+\$[0-9a-f]{32}/g),
  shape('xox xapp- xwfp-', /x(?:ox[a-z]|app|wfp)-[\w.-]{16,}/gi),
  shape('SG.', /SG\.[\w-]{16,32}\.[\w-]{16,64}/g),
  shape('key-', /(?<!\w)key-[0-9a-f]{32}(?!\w)/g),
  shape('-us', /(?<!\w)[0-9a-f]{32}-us\d{1,2}(?!\w)/g),
  shape('AC SK', /(?<!\w)(?:AC|SK)[0-9a-f]{32}(?!\w)/g),
  shape(':AA', /(?<!\w)\d{8,10}:AA[\w-]{32,}/g),
  shape('.', /(?<![\w.-])[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}/g, random),
  shape('sk-', /(?<![A-Za-z0-9])sk-[\w-]{20,}/g, (match) => mixed(match) && /[A-Z]|[0-9a-f]{20}|\d{3}/.test(match)),
  shape('hf_ api_org_', /(?<!\w)(?:hf|api_org)_[A-Za-z]{34,}/g),
  shape('r8_', /(?<!\w)r8_\w{37,}/g),
  shape(
    'gsk_ pplx- xai- fw_ tgp_v1_ nvapi-',
    /(?<![A-Za-z0-9])(?:gsk_|pplx-|xai-|fw_|tgp_v1_|nvapi-)[\w-]{20,}/g,
    mixed,
  ),
  shape('glsa_ glc_', /gl(?:sa|c)_[\w+/=]{32,}/g),
  shape('NRAK- NRII- NRJS- NRAA-', /NR(?:AK|II|JS|AA)-\w{18,}/g),
  shape('sntrys_ sntryu_', /sntry[su]_[\w+/=.-]{40,}/g),
  shape('dapi', /(?<!\w)dapi[0-9a-f]{32}/g),
  shape('PMAK-', /PMAK-[0-9a-f]{24}-[0-9a-f]{34}/g),
  shape('ntn_ secret_', /(?<!\w)(?:ntn|secret)_[A-Za-z0-9]{40,}/g, mixed),
  shape('figd_ figu_', /fig[du]_[\w-]{20,}/g),
  shape('pat', /(?<!\w)pat[A-Za-z0-9]{14}\.[0-9a-f]{64}/g),
  shape('phx_ phc_', /(?<!\w)ph[xc]_[A-Za-z0-9]{40,}/g),
  shape('AAAAAAAAAAAAAAAAAAAA', /(?<!\w)A{20,22}[\w%]{60,}/g, random),
  shape('EAAC EAAG EAAB', /(?<!\w)EAA[BCG][A-Za-z0-9]{60,}/g, random),
  shape('AGE-SECRET-KEY-', /AGE-SECRET-KEY-1[A-Z0-9]{50,}/g),
  // Password hashes: those of crypt, Django and LDAP.
  shape('$2 $1$ $5$ $6$ $y$ $7$ $apr1$', /\$(?:2[abxy]?\$\d\d|1|5|6|y|7|apr1)\$[./A-Za-z0-9$=,]{20,}/g),
  shape('$argon2 $scrypt $pbkdf2', /\$(?:argon2(?:id?|d)|scrypt|pbkdf2(?:-sha\d+)?)\$[\w./+=,$-]{20,}/g),
  shape('pbkdf2_ bcrypt_', /(?:pbkdf2_sha\d+|bcrypt_sha256)\$[\w./+=$-]{20,}/g),
  shape('{S {s', /\{S?S?(?:SHA|MD5|CRYPT)(?:\d{3})?\}[A-Za-z0-9+/=$.]{16,}/gi),
  // A key of OpenSSH without its armour.
  shape('b3BlbnNzaC1rZXktdjE', /b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=]{20,}/g),
]

/** Returns the tokens in a text that have a recognisable form. */
export function findKnownTokens(text: string): readonly Span[] {
  const spans: Span[] = []
  for (const { literals, pattern, check } of shapes) {
    if (!literals.some((literal) => text.includes(literal))) continue
    for (const { 0: match, index } of text.matchAll(pattern))
      if (check === undefined || check(match)) spans.push({ start: index, end: index + match.length })
  }
  return [...spans, ...findJwts(text)]
}

/**
 * Finds JSON Web Tokens: a run of at least two parts in base64url, of which one begins like a JSON object. The run is split, because one
 * regular expression for it would not be linear.
 */
function findJwts(text: string): readonly Span[] {
  if (!text.includes('eyJ') && !text.includes('ewog')) return []
  const spans: Span[] = []
  for (const { 0: run, index } of text.matchAll(/[\w.-]{30,}/g)) {
    let at = 0
    let start: number | undefined
    for (const part of run.split('.')) {
      const begins = part.search(/eyJ|ewog/)
      if (start === undefined && begins !== -1 && part.length - begins >= 10) start = at + begins
      else if (start !== undefined && part.length >= 8) {
        spans.push({ start: index + start, end: index + run.length })
        break
      }
      at += part.length + 1
    }
  }
  return spans
}

/** An access key id of AWS. Its secret is 40 characters of base64 close to it. */
const awsId = /(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Z0-9])/g
const awsSecret = /(?<![A-Za-z0-9+/])(?![0-9a-f]{40})[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])/g
/** Maximum distance of an AWS secret from its access key id, in characters. */
const maxPairDistance = 200

export function findAwsSecrets(text: string): readonly Span[] {
  if (!text.includes('AKIA') && !text.includes('ASIA')) return []
  const spans: Span[] = []
  for (const { 0: id, index } of text.matchAll(awsId)) {
    const from = Math.max(0, index - maxPairDistance)
    for (const match of text.slice(from, index + id.length + maxPairDistance).matchAll(awsSecret))
      spans.push({ start: from + match.index, end: from + match.index + match[0].length })
  }
  return spans
}
