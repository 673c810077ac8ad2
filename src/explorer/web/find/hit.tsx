import { foldText } from '../../../core/kit/matching.ts'
import { type FoundHit, rowsMimeType, splitAtMarks } from '../../../core/search-answer.ts'
import { decodeIfValid } from '../../../core/uri.ts'
import type { Resource } from '../../../core/view.ts'
import { isPicked, toggleFile } from '../basket/picked.ts'
import { breadcrumbsOf } from '../listing/browse.ts'
import { FileIcon } from '../preview/file-icon.tsx'
import { languageOf, mediaTypeOf } from '../preview/model/kind.ts'
import { matchesIn } from '../preview/model/lines.ts'
import { Button, MarkedText, ServerText } from '../shell/fields.tsx'
import { Icon } from '../shell/icons.tsx'
import { linkTo, previewedHit, route } from '../state/route.ts'
import { escapeInvisible, formatTime, langOf } from '../words/texts.ts'
import { documentResource, HitLink, lastBreadcrumbLabel } from './hit-link.tsx'
import { RowHits } from './row-hits.tsx'
import { Snippet } from './snippet.tsx'
import { t } from './words.ts'

export function HitGroupItem({ group: { document, hits } }: { readonly group: HitGroup }) {
  const [best] = hits
  if (best === undefined) return null
  const isTable = isRow(best)
  const { mimeType, link } = best
  const title = isTable ? undefined : best.title
  const name = isTable ? tableNameOf(document) : lastBreadcrumbLabel(document)
  const picked = isPicked(document)
  const time = best.modified === undefined ? Number.NaN : Date.parse(best.modified)
  const isCode = isCodeOf(best)
  return (
    <li class="group">
      <div class="group-head">
        {isTable ? <Icon name="table" /> : <FileIcon uri={document} mimeType={mimeType} />}
        <ServerText as="h3" class="group-name one-line" text={name} />
        <ServerText class="group-title one-line" text={title === name ? undefined : title} />
        <span class="group-count">{hits.length}</span>
        {isTable ? null : (
          <Button
            name={picked ? t('unpick') : t('pick')}
            icon={picked ? 'tick' : 'basket'}
            class="button-icon"
            aria-pressed={picked}
            onClick={() => toggleFile(documentResource(best))}
          />
        )}
      </div>
      <p class="group-facts">
        <bdi class="group-path" title={escapeInvisible(document)}>
          {breadcrumbText(document)}
        </bdi>
        {Number.isFinite(time) ? <span>{formatTime(time)}</span> : null}
        <a href={linkTo({ view: 'tree', uri: document })}>{t('showInTree')}</a>
        {link !== undefined && /^https?:\/\//i.test(link) ? (
          <a href={link} target="_blank" rel="noopener noreferrer">
            {t('atSource')} ↗
          </a>
        ) : null}
      </p>
      {isTable ? (
        <RowHits hits={hits} />
      ) : (
        <ol>
          {hits.map((hit) => (
            <Hit key={hit.uri} hit={hit} isCode={isCode} />
          ))}
        </ol>
      )}
    </li>
  )
}

/** One hit: a link with its heading or lines, and the text around the matches. */
function Hit({ hit, isCode }: { readonly hit: FoundHit; readonly isCode: boolean }) {
  const { lines, heading, uri, snippet } = hit
  const at = t('lines', { start: lines.start, end: lines.end })
  // In a table the heading is the row of column names, which the snippet shows.
  const isTable = /^text\/(?:csv|tab-separated-values)\b/.test(hit.mimeType ?? '')
  const label = heading === undefined || heading === '' || isTable ? at : heading
  const isOpen = (previewedHit.value ?? route.value.uri) === uri
  return (
    <li class={isOpen ? 'hit hit-open' : 'hit'} lang={langOf(`${label}${snippet.text}`)}>
      <HitLink uri={uri} isOpen={isOpen} isCode={isCode} onToggle={() => toggleFile(documentResource(hit))}>
        {escapeInvisible(label)}
      </HitLink>
      {label === at ? null : <span class="hit-lines">{at}</span>}
      <Snippet hit={hit} language={isCode ? languageOf(mediaTypeOf(hit.mimeType), hit.document) : undefined} />
    </li>
  )
}

export function NameHit({ resource }: { readonly resource: Resource }) {
  const { uri, name, mimeType } = resource
  const isOpen = (previewedHit.value ?? route.value.uri) === uri
  return (
    <li class={isOpen ? 'name-hit hit-open' : 'name-hit'}>
      <FileIcon uri={uri} mimeType={mimeType} />
      <HitLink uri={uri} isOpen={isOpen} lang={langOf(name)} onToggle={() => toggleFile(resource)}>
        <MarkedText pieces={markName(name, route.value.q ?? '')} />
      </HitLink>
      <bdi class="group-path" title={escapeInvisible(uri)}>
        {breadcrumbText(uri)}
      </bdi>
    </li>
  )
}

/** The folders above a resource, from its mount down. */
function breadcrumbText(uri: string): string {
  return breadcrumbsOf(uri)
    .slice(0, -1)
    .map(({ label }) => escapeInvisible(label))
    .join(' › ')
}

function isCodeOf({ mimeType, document }: FoundHit): boolean {
  const type = mediaTypeOf(mimeType)
  return type !== 'text/markdown' && languageOf(type, document) !== undefined
}

/** Maximum number of name matches that are shown above the hits. */
const maxShown = 5

function fitOf(query: string, name: string, path: string): number | undefined {
  const at = name.indexOf(query)
  if (at === 0) return 3000 - name.length
  if (at > 0) return (/[\s._\-()[\]]/.test(name[at - 1] ?? '') ? 2000 : 1000) - name.length
  const words = query.split(/\s+/)
  if (words.length > 1 && words.every((word) => path.includes(word))) return 500 - path.length
  return query.includes('/') && path.includes(query) ? 800 - path.length : undefined
}

/** Subtracted from the fit of entries of mounts that repeat files of other mounts, such as git. */
const copyPenalty = 5000
const isCopy = (uri: string) => /^(?:git|config|env|pkg):/i.test(uri)

/** Returns at most {@link maxShown} resources whose names or paths match the query, best first. */
export function nameHits(resources: Iterable<Resource>, query: string): readonly Resource[] {
  const needle = foldText(query.trim())
  if (needle === '') return []
  const candidates: { readonly resource: Resource; readonly fit: number }[] = []
  for (const resource of resources) {
    const fit = fitOf(needle, foldText(resource.name), foldText(decodedPath(resource.uri)))
    if (fit !== undefined) candidates.push({ resource, fit: fit - (isCopy(resource.uri) ? copyPenalty : 0) })
  }
  return candidates
    .sort((a, b) => b.fit - a.fit || (a.resource.uri < b.resource.uri ? -1 : 1))
    .slice(0, maxShown)
    .map(({ resource }) => resource)
}

/** Splits a name into pieces, and marks those that match the query. */
export function markName(name: string, query: string) {
  const marks = matchesIn([name], query.trim()).map(({ start, end }) => [start, end] as const)
  return splitAtMarks({ text: name, marks })
}

function decodedPath(uri: string): string {
  return uri.includes('%') ? decodeIfValid(uri) : uri
}

const isRow = ({ mimeType }: FoundHit) => mimeType === rowsMimeType

const tableRowsUri = (document: string) => document.replace(/(\/rows)\/[^/]+$/, '$1')

/** The name of a table, by the address of its rows. */
function tableNameOf(rows: string): string {
  return breadcrumbsOf(rows).at(-2)?.label ?? lastBreadcrumbLabel(rows)
}

/** The hits of one document, or of one table of a database. */
interface HitGroup {
  readonly document: string
  readonly hits: readonly FoundHit[]
}

export function groupHits(hits: readonly FoundHit[], isTabular = false): readonly HitGroup[] {
  const groups = new Map<string, FoundHit[]>()
  for (const hit of hits) {
    const key = isTabular && isRow(hit) ? tableRowsUri(hit.document) : hit.document
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [hit])
    else group.push(hit)
  }
  return [...groups].map(([document, own]) => ({ document, hits: own }))
}
