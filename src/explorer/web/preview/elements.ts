export function createElement<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]>,
): HTMLElementTagNameMap[Name] {
  return Object.assign(document.createElement(name), properties)
}

/** Makes an element focusable, so that keys scroll it, and names it for screen readers. */
export function makeScrollable(box: HTMLElement, role: 'group' | 'region', label: string): void {
  box.tabIndex = 0
  box.setAttribute('role', role)
  box.setAttribute('aria-label', label)
}
