/* Prints the settings as completions of bash and zsh. */
#include "server/config/config_impl.h"

#include <string.h>

static const char commands[] = "serve init run check inspect compare bench --help --version --man";

static bool is_folder(const struct ifd_setting *s)
{
    return strcmp(s->unit, "DIR") == 0;
}

static bool is_file(const struct ifd_setting *s)
{
    return strcmp(s->unit, "FILE") == 0 || strcmp(s->unit, "PATH") == 0;
}

/* The words that the setting takes, with blanks between them. */
static void print_words(FILE *out, const struct ifd_setting *s)
{
    if (s->type == IFD_SETTING_BOOL) {
        (void)fputs("true false", out);
    }
    for (const struct ifd_choice *c = s->choices; c && c->word; c++) {
        (void)fprintf(out, "%s%s", c == s->choices ? "" : " ", c->word);
    }
}

/* A case of the value behind the flag. */
static void print_bash_value(FILE *out, const struct ifd_setting *s)
{
    (void)fprintf(out, "        --%s) ", s->flag);
    if (is_folder(s)) {
        (void)fputs("COMPREPLY=($(compgen -d -- \"$cur\"))", out);
    } else if (is_file(s)) {
        (void)fputs("COMPREPLY=($(compgen -f -- \"$cur\"))", out);
    } else {
        (void)fputs("COMPREPLY=($(compgen -W '", out);
        print_words(out, s);
        (void)fputs("' -- \"$cur\"))", out);
    }
    (void)fputs("; return ;;\n", out);
}

void ifd_config_bash(FILE *out)
{
    static const char head[] =
        "# bash completion for inferd(1), made by inferd --bash-completion\n"
        "_inferd()\n"
        "{\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        COMPREPLY=($(compgen -W '%s' -- \"$cur\"))\n"
        "        return\n"
        "    fi\n"
        "    if [ \"${COMP_WORDS[1]}\" != serve ]; then\n"
        "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
        "        return\n"
        "    fi\n"
        "    if [ \"$cur\" = = ]; then # bash splits words at the equals sign\n"
        "        cur=\n"
        "    elif [ \"$flag\" = = ]; then\n"
        "        flag=${COMP_WORDS[COMP_CWORD-2]}\n"
        "    fi\n"
        "    case $flag in\n";
    static const char middle[] = "    esac\n"
                                 "    if [[ $cur != -* ]]; then\n"
                                 "        COMPREPLY=($(compgen -d -- \"$cur\"))\n"
                                 "        return\n"
                                 "    fi\n"
                                 "    COMPREPLY=($(compgen -W '--help";
    static const char tail[] = "' -- \"$cur\"))\n"
                               "}\n"
                               "complete -o filenames -F _inferd inferd\n";
    (void)fprintf(out, head, commands);
    for (size_t i = 0; i < ifd_setting_count; i++) {
        print_bash_value(out, &ifd_settings[i]);
    }
    (void)fputs(middle, out);
    for (size_t i = 0; i < ifd_setting_count; i++) {
        (void)fprintf(out, " --%s", ifd_settings[i].flag);
    }
    (void)fputs(tail, out);
}

/* The first sentence of the text, for a description in single quotes and brackets. */
static void print_sentence(FILE *out, const char *text)
{
    for (; *text != '\0' && strncmp(text, ". ", 2) != 0; text++) {
        if (strchr("[]:\\", *text)) {
            (void)fputc('\\', out);
        }
        (void)fputs(*text == '\'' ? "'\\'" : "", out);
        (void)fputc(*text, out);
    }
}

static void print_zsh_option(FILE *out, const struct ifd_setting *s)
{
    (void)fprintf(out, "        '%s--%s=[", s->type == IFD_SETTING_LIST ? "*" : "", s->flag);
    print_sentence(out, s->text);
    (void)fprintf(out, "]:%s:", s->unit);
    if (is_folder(s) || is_file(s)) {
        (void)fputs(is_folder(s) ? "_files -/" : "_files", out);
    } else if (s->choices || s->type == IFD_SETTING_BOOL) {
        (void)fputc('(', out);
        print_words(out, s);
        (void)fputc(')', out);
    }
    (void)fputs("' \\\n", out);
}

void ifd_config_zsh(FILE *out)
{
    static const char head[] = "#compdef inferd\n"
                               "# zsh completion for inferd(1), made by inferd --zsh-completion\n"
                               "if (( CURRENT == 2 )); then\n"
                               "    compadd -- %s\n"
                               "elif [[ $words[2] != serve ]]; then\n"
                               "    _files\n"
                               "else\n"
                               "    shift words\n"
                               "    (( CURRENT-- ))\n"
                               "    _arguments \\\n";
    (void)fprintf(out, head, commands);
    for (size_t i = 0; i < ifd_setting_count; i++) {
        print_zsh_option(out, &ifd_settings[i]);
    }
    (void)fputs("        '--help[Explain the options]' '*:folder of models:_files -/'\nfi\n", out);
}
