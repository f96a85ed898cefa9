"""The look of Gradio's own controls: values point at tokens of `assets/page.css`, which knows light and dark."""

import gradio as gr

_FONTS = (
    "Inter",
    "ui-sans-serif",
    "system-ui",
    "-apple-system",
    "Segoe UI",
    "PingFang SC",
    "Microsoft YaHei",
    "Noto Sans",
    "Noto Sans CJK SC",
    "sans-serif",
)
_MONO_FONTS = ("ui-monospace", "SF Mono", "Cascadia Mono", "Noto Sans Mono", "monospace")

# Before the style sheet is there, so written out: nobody gets a white flash in the dark.
_PAGE, _PAGE_DARK, _INK, _INK_DARK = "#f5f7fa", "#11151c", "#1b2130", "#e7eaf1"

_TOKENS = {
    "body_text_color_subdued": "var(--fd-muted)",
    "background_fill_primary": "var(--fd-card)",
    "background_fill_secondary": "var(--fd-page)",
    "border_color_primary": "var(--fd-line)",
    "border_color_accent": "var(--fd-accent)",
    "color_accent_soft": "var(--fd-accent-soft)",
    "link_text_color": "var(--fd-accent-ink)",
    "block_background_fill": "transparent",
    "block_border_width": "0px",
    "block_shadow": "none",
    "block_padding": "0px",
    "block_title_text_color": "var(--fd-ink)",
    "block_label_text_color": "var(--fd-ink)",
    "block_info_text_color": "var(--fd-muted)",
    "input_background_fill": "var(--fd-card)",
    "input_background_fill_focus": "var(--fd-card)",
    "input_border_width": "1px",
    "input_border_color": "var(--fd-line-strong)",
    "input_border_color_focus": "var(--fd-accent)",
    "input_shadow_focus": "0 0 0 3px var(--fd-accent-soft)",
    "input_placeholder_color": "var(--fd-muted)",
    "checkbox_background_color": "var(--fd-card)",
    "checkbox_background_color_focus": "var(--fd-card)",
    "checkbox_background_color_hover": "var(--fd-card)",
    "checkbox_background_color_selected": "var(--fd-accent)",
    "checkbox_border_color": "var(--fd-line-strong)",
    "checkbox_border_color_hover": "var(--fd-accent)",
    "checkbox_border_color_focus": "var(--fd-accent)",
    "checkbox_border_color_selected": "var(--fd-accent)",
    "checkbox_label_background_fill": "transparent",
    "checkbox_label_background_fill_hover": "transparent",
    "checkbox_label_background_fill_selected": "transparent",
    "checkbox_label_border_width": "0px",
    "checkbox_label_text_color": "var(--fd-ink)",
    "checkbox_label_text_color_selected": "var(--fd-ink)",
    "slider_color": "var(--fd-accent)",
    "button_primary_background_fill": "var(--fd-accent)",
    "button_primary_background_fill_hover": "var(--fd-accent-strong)",
    "button_primary_border_color": "transparent",
    "button_primary_text_color": "var(--fd-on-accent)",
    "button_secondary_background_fill": "var(--fd-card)",
    "button_secondary_background_fill_hover": "var(--fd-page)",
    "button_secondary_border_color": "var(--fd-line-strong)",
    "button_secondary_text_color": "var(--fd-ink)",
    "loader_color": "var(--fd-accent)",
}


def make_theme() -> gr.themes.Base:
    """A theme without web fonts, whose colors follow the style sheet's tokens in light and dark."""
    theme = gr.themes.Base(
        font=_FONTS,
        font_mono=_MONO_FONTS,
        radius_size=gr.themes.sizes.radius_md,
        spacing_size=gr.themes.sizes.spacing_md,
    )
    dark = {
        f"{name}_dark": value for name, value in _TOKENS.items() if hasattr(theme, f"{name}_dark")
    }
    return theme.set(
        body_background_fill=_PAGE,
        body_background_fill_dark=_PAGE_DARK,
        body_text_color=_INK,
        body_text_color_dark=_INK_DARK,
        **_TOKENS,
        **dark,
    )
