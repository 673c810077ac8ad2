export function createElement<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]>,
): HTMLElementTagNameMap[Name] {
  return Object.assign(document.createElement(name), properties)
}

export function makeScrollable(box: HTMLElement, role: 'group' | 'region', label: string): void {
  box.tabIndex = 0
  box.setAttribute('role', role)
  box.setAttribute('aria-label', label)
}
