import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { lastSegment } from '../../../client/wire.ts'
import { isResourceError } from '../../../core/errors.ts'
import { isObject } from '../../../core/kit/object.ts'
import { documentOriginIn, metaKeys } from '../../../core/meta.ts'
import { Button } from '../shell/fields.tsx'
import { announce, copyAndAnnounce, errorSentence } from '../state/announce.ts'
import { download, downloadFrom } from '../state/browser.ts'
import { linkTo } from '../state/route.ts'
import { linkIn, requireConnection } from '../state/session.ts'
import { escapeInvisible, formatNumber, formatSize, langOf, language } from '../words/texts.ts'
import { type PreviewReader, textOrBytes, uriWithoutPart } from './load.ts'
import { documentFormOf } from './model/kind.ts'
import { resolveReference, uriWithParameter, withPart } from './model/reference.ts'
import { t } from './words.ts'

/** Whether the details of a resource are shown. The setting stays for the next resource. */
export const areDetailsShown = signal(false)

export function Details({ reader }: { readonly reader: PreviewReader }) {
  const { uri, reading, resource } = reader
  const own = resource.value
  const { value } = reading
  const content = value.state === 'ready' ? value.contents[0] : undefined
  const meta = { ...own?.meta, ...content?.meta }
  const version = content?.version ?? own?.version
  const { link } = documentOriginIn(meta)
  const roles = own?.audience?.map((role) => t(role === 'user' ? 'audienceUser' : 'audienceAssistant'))
  const encoding = meta[metaKeys.encoding]
  return (
    <dl class="details">
      <Fact term={t('uri')}>
        <code>{escapeInvisible(uri)}</code> <CopyButton text={uri} label={t('copyUri')} />
      </Fact>
      <Fact term={t('command')}>
        <code>{escapeInvisible(commandFor(uri))}</code> <CopyButton text={commandFor(uri)} label={t('copyCommand')} />
      </Fact>
      <TextFact term={t('name')} text={own?.title === undefined ? undefined : own.name} />
      <TextFact term={t('description')} text={own?.description} />
      <TextFact term={t('type')} text={content?.mimeType ?? own?.mimeType} />
      <TextFact
        term={t('size')}
        text={own?.size === undefined ? undefined : `${formatSize(own.size)} (${formatNumber(own.size)})`}
      />
      {own?.modified === undefined ? null : (
        <Fact term={t('modified')}>
          <time dateTime={isoOf(own.modified)}>{exactTime(own.modified)}</time> (
          {formatAgo(language.value, own.modified, Date.now())})
        </Fact>
      )}
      <TextFact term={t('version')} text={version} />
      <TextFact term={t('audience')} text={roles?.join(', ')} />
      <TextFact term={t('priority')} text={own?.priority === undefined ? undefined : formatNumber(own.priority)} />
      <TextFact term={t('encoding')} text={typeof encoding === 'string' ? encoding : undefined} />
      {link === undefined ? null : (
        <Fact term={t('link')}>
          <a href={link} target="_blank" rel="noopener noreferrer">
            {escapeInvisible(link)}
          </a>
        </Fact>
      )}
      <Readings uri={uri} told={meta[metaKeys.reading]} />
      <Alternates uri={uri} told={meta['dev.hikidashi/alternates']} />
      {Object.keys(meta).length === 0 ? null : (
        <Fact term={t('meta')}>
          <details>
            <summary>{formatNumber(Object.keys(meta).length)}</summary>
            <pre>{escapeInvisible(JSON.stringify(withoutSecrets(meta), null, 2))}</pre>
          </details>
        </Fact>
      )}
    </dl>
  )
}

function Readings({ uri, told }: { readonly uri: string; readonly told: unknown }) {
  const forms = readingsIn(told)
  if (forms.length === 0) return null
  return (
    <Fact term={t('readAs')}>
      {forms.map((form) => (
        <a key={form} class="spaced" href={linkTo({ uri: uriWithParameter(uriWithoutPart(uri), 'as', form) })}>
          {form === 'text' ? t('asText') : form === 'markdown' ? t('asMarkdown') : escapeInvisible(form)}
        </a>
      ))}
    </Fact>
  )
}

/** Returns the names of the forms in which a document can be read, from its metadata. */
export function readingsIn(value: unknown): readonly string[] {
  const list = isObject(value) && Array.isArray(value.forms) ? value.forms : []
  return list.filter((form): form is string => typeof form === 'string' && /^[a-z]{1,20}$/.test(form))
}

function Alternates({ uri, told }: { readonly uri: string; readonly told: unknown }) {
  const links = (Array.isArray(told) ? told : []).flatMap((one: unknown) => {
    if (!isObject(one) || typeof one.href !== 'string') return []
    const target = resolveReference(uriWithoutPart(uri), one.href)
    return target === undefined
      ? []
      : [{ name: typeof one.language === 'string' ? one.language : one.href, uri: target.uri }]
  })
  if (links.length === 0) return null
  return (
    <Fact term={t('alternates')}>
      {links.map(({ name, uri: other }) => (
        <a key={name} class="spaced" href={linkTo({ uri: other })}>
          {escapeInvisible(name)}
        </a>
      ))}
    </Fact>
  )
}

function Fact({ term, children }: { readonly term: string; readonly children: ComponentChildren }) {
  return (
    <>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </>
  )
}

function TextFact({ term, text }: { readonly term: string; readonly text: string | undefined }) {
  if (text === undefined || text === '') return null
  return (
    <Fact term={term}>
      <bdi lang={langOf(text)}>{escapeInvisible(text)}</bdi>
    </Fact>
  )
}

function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  return <Button name={label} class="small" onClick={() => void copyAndAnnounce(text)} />
}

/** Replaces the link to the whole object by `…`, because anybody with the link can read the object. */
function withoutSecrets(meta: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { [metaKeys.link]: link, ...rest } = meta
  return link === undefined ? rest : { ...rest, [metaKeys.link]: '…' }
}

function exactTime(time: number): string {
  return new Intl.DateTimeFormat(language.value, { dateStyle: 'full', timeStyle: 'long' }).format(time)
}

function isoOf(time: number): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}

export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

export function commandFor(uri: string): string {
  return `hikidashi read ${shellWord(uri)}`
}

/** Saves the shown contents as files. If only a part of a resource, or the text of a document, is shown, saves the original as a whole. */
export async function saveContent({ uri, reading }: PreviewReader): Promise<void> {
  const { value } = reading
  if (value.state !== 'ready') return
  try {
    const isPart = value.part !== undefined || documentFormOf(uri, value.contents[0]?.mimeType) !== undefined
    const contents = isPart ? (await requireConnection().view.read(withPart(uri, undefined))).contents : value.contents
    for (const content of contents) download(lastSegment(content.uri), textOrBytes(content) ?? '')
  } catch (error) {
    // A content that is too large for an answer may have its own link.
    const link = isResourceError(error, 'too-large') ? linkIn(error.cause) : undefined
    if (link === undefined) announce(errorSentence(error))
    else downloadFrom(lastSegment(uri), link)
  }
}

/** A relative time, such as "3 days ago", in the language of the page. */
export function formatAgo(language: string, time: number, now: number): string {
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })
  const seconds = (time - now) / 1000
  const steps = [
    ['second', 60],
    ['minute', 60],
    ['hour', 24],
    ['day', 30.44],
    ['month', 12],
  ] as const
  let value = seconds
  for (const [unit, most] of steps) {
    if (Math.abs(value) < most) return format.format(Math.round(value), unit)
    value /= most
  }
  return format.format(Math.round(value), 'year')
}
