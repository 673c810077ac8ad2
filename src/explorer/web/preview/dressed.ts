import { decodeIfValid } from '../../../core/uri.ts'
import { createUrl, releaseUrl } from '../state/browser.ts'
import { linkTo } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible } from '../words/texts.ts'
import { createElement, makeScrollable } from './elements.ts'
import { textOrBytes } from './load.ts'
import { imageTypeOf, languageOfFence } from './model/kind.ts'
import type { HighlightedLine } from './model/lines.ts'
import { classifyLink, isSameOrigin } from './model/reference.ts'
import { t } from './words.ts'
import { highlight } from './workers.ts'

export interface DocumentHeading {
  readonly id: string
  readonly text: string
  readonly level: number
}

export function completeDocument(
  page: HTMLElement,
  uri: string,
): { readonly headings: readonly DocumentHeading[]; readonly end: () => void } {
  const controller = new AbortController()
  const urls: string[] = []
  const headings = headingsOf(page)
  for (const link of page.querySelectorAll<HTMLAnchorElement>('a[data-href]')) dressLink(link, uri, page)
  const inView = whenInView(controller.signal)
  for (const image of page.querySelectorAll<HTMLImageElement>('img'))
    dressImage(image, uri, { urls, inView, signal: controller.signal })
  for (const box of page.querySelectorAll<HTMLInputElement>('input')) {
    if (box.type !== 'checkbox') box.remove()
    box.disabled = true
    box.setAttribute('aria-label', (box.parentElement?.textContent ?? '').trim().slice(0, 80))
  }
  for (const table of page.querySelectorAll('table')) boxed(table)
  // The code that draws formulas is large, so it is loaded for a document with formulas. model/markdown-html.ts gives formulas this class.
  const formulas = [...page.querySelectorAll<HTMLElement>('code[class^="language-math"]')]
  if (formulas.length > 0)
    void import('./formulas.ts').then(({ drawFormulas }) => drawFormulas(formulas, controller.signal))
  let coloured = 0
  for (const code of page.querySelectorAll<HTMLElement>('pre > code')) {
    coloured += code.textContent?.length ?? 0
    if (coloured <= maxColoured) void colour(code, controller.signal)
  }
  return {
    headings,
    end: () => {
      controller.abort()
      for (const url of urls) releaseUrl(url)
    },
  }
}

/** Maximum number of highlighted characters in one document, because each word becomes an element. */
const maxColoured = 100_000

function headingsOf(page: HTMLElement): readonly DocumentHeading[] {
  const names = new Set<string>()
  // Next number for headings of the same name.
  const numbers = new Map<string, number>()
  return [...page.querySelectorAll<HTMLElement>('h1, h2, h3, h4')].map((heading) => {
    const text = heading.textContent ?? ''
    const slug = `user-content-${slugOf(text)}`
    let id = slug
    for (let number = numbers.get(slug) ?? 1; names.has(id); number++) {
      id = `${slug}-${number}`
      numbers.set(slug, number + 1)
    }
    names.add(id)
    heading.id = id
    heading.tabIndex = -1
    return { id, text: escapeInvisible(text), level: Number(heading.nodeName.slice(1)) }
  })
}

/** Returns the usual anchor of a heading: lower case, hyphens for spaces, no punctuation. */
function slugOf(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-')
}

function dressLink(link: HTMLAnchorElement, uri: string, page: HTMLElement): void {
  const reference = link.dataset.href ?? ''
  if (reference.startsWith('#')) {
    const name = decodeFragment(reference.slice(1))
    link.href = '#'
    link.addEventListener('click', (event) => {
      event.preventDefault()
      event.stopPropagation()
      const target = page.querySelector<HTMLElement>(`[id="${CSS.escape(`user-content-${name}`)}"]`)
      target?.scrollIntoView({ block: 'start' })
      target?.focus({ preventScroll: true })
    })
    return
  }
  const { kind, target } = classifyLink(uri, reference)
  if (kind === 'none' || target === undefined) return
  if (kind === 'inside') {
    link.href = linkTo({ uri: target.uri, source: undefined })
    link.title = escapeInvisible(target.uri)
    return
  }
  link.href = target.uri + (target.fragment === undefined ? '' : `#${target.fragment}`)
  link.target = '_blank'
  link.rel = 'noopener noreferrer'
  link.classList.add('outside')
  link.title = link.href
}

interface Images {
  /** Object URLs that are revoked together with the document. */
  readonly urls: string[]
  readonly inView: (element: HTMLElement, show: () => void) => void
  readonly signal: AbortSignal
}

/** Maximum number of images of one document that are shown without a click. */
const maxShownImages = 50

/** Returns a function that calls `show` when an element comes into view, for the first {@link maxShownImages} elements. */
function whenInView(signal: AbortSignal): Images['inView'] {
  const waiting = new Map<Element, () => void>()
  let remaining = maxShownImages
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue
        observer.unobserve(target)
        waiting.get(target)?.()
        waiting.delete(target)
      }
    },
    { rootMargin: '200px' },
  )
  signal.addEventListener('abort', () => observer.disconnect(), { once: true })
  return (element, show) => {
    if (remaining-- <= 0) return
    waiting.set(element, show)
    observer.observe(element)
  }
}

/**
 * Replaces an image of the server by a button that loads it; the first images of the same origin load in view. Any other becomes a link or
 * a text.
 */
function dressImage(image: HTMLImageElement, uri: string, images: Images): void {
  const reference = image.dataset.image ?? ''
  const name = escapeInvisible(image.alt === '' ? reference.slice(0, 80) : image.alt)
  const { kind, target } = classifyLink(uri, reference)
  if (kind === 'inside' && target !== undefined) {
    const textContent = t('showImage', { name })
    const button = createElement('button', { type: 'button', className: 'button image-button', textContent })
    const show = () => void showImage(button, target.uri, name, images)
    button.addEventListener('click', (event) => {
      event.preventDefault()
      show()
    })
    image.replaceWith(button)
    // A read of another mount may have an effect, such as taking a screenshot, so it needs a click.
    if (isSameOrigin(uri, target.uri)) images.inView(button, show)
    return
  }
  const isOutside = kind === 'outside' && target !== undefined && image.closest('a') === null
  const element = createElement(isOutside ? 'a' : 'span', {
    className: 'remote-image',
    textContent: t('remoteImage', { name }),
  })
  if (element instanceof HTMLAnchorElement && target !== undefined)
    Object.assign(element, { href: target.uri, target: '_blank', rel: 'noopener noreferrer', title: target.uri })
  image.replaceWith(element)
}

async function showImage(button: HTMLElement, uri: string, name: string, { urls, signal }: Images): Promise<void> {
  try {
    const [content] = (await requireConnection().view.read(uri, { signal })).contents
    const isDrawing = content !== undefined && content.mimeType?.startsWith('image/svg+xml') === true
    const body = content === undefined ? undefined : textOrBytes(content)
    const type = isDrawing ? 'image/svg+xml' : body instanceof Uint8Array ? imageTypeOf(body) : undefined
    if (body === undefined || type === undefined) throw new Error('This is not an image.')
    if (signal.aborted || !button.isConnected) return
    const url = createUrl(body, type)
    urls.push(url)
    button.replaceWith(createElement('img', { src: url, alt: name }))
  } catch {
    if (!signal.aborted) button.textContent = t('imageFailed')
  }
}

const shortText = /^\s*[\w.,:%+/-]{1,24}(?: [\d:]{4,8})?\s*$/

/** Length above which a cell gets a minimum width, in characters. */
const longText = 32

/** Wraps a table, so that a wide table scrolls by itself, and marks its short and long cells. */
function boxed(table: HTMLTableElement): void {
  const box = createElement('div', { className: 'table-scroll' })
  makeScrollable(box, 'region', t('table'))
  table.replaceWith(box)
  box.append(table)
  for (const cell of table.querySelectorAll('td, th')) {
    const text = cell.textContent ?? ''
    if (shortText.test(text)) cell.classList.add('short')
    else if (text.length > longText) cell.classList.add('long')
  }
}

async function colour(code: HTMLElement, signal: AbortSignal): Promise<void> {
  const pre = code.parentElement
  if (pre !== null) pre.tabIndex = 0
  const language = languageOfFence(/language-(\S+)/.exec(code.className)?.[1] ?? '')
  const text = code.textContent ?? ''
  if (language === undefined || text.length > 50_000) return
  const lines = await highlight(text, language)
  if (lines !== undefined && !signal.aborted) code.replaceChildren(...nodesOf(lines))
}

function nodesOf(lines: readonly HighlightedLine[]): readonly Node[] {
  return lines.flatMap((line, index) => [
    ...(index === 0 ? [] : [document.createTextNode('\n')]),
    ...line.map(([text, kind]) => {
      if (kind === '') return document.createTextNode(text)
      return createElement('span', { className: kind, textContent: text })
    }),
  ])
}

function decodeFragment(text: string): string {
  return decodeIfValid(text).toLowerCase()
}
